// Measures all-reduce between processes over TCP on loopback, as users of gloo or MPI measure theirs.
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "tern/core/error.h"
#include "tern/core/program.h"
#include "tern/dist/comm/tcp.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/trainer/job/program.h"

namespace tern::bench {
namespace {

using namespace trainer;

constexpr int kWarmUp = 2;

int times_of(int64_t bytes) { return bytes <= 100'000 ? 200 : bytes <= 1'000'000 ? 60 : bytes <= 25'000'000 ? 12 : 6; }

/// The time of every counted run on this rank, in milliseconds.
std::vector<double> time_all_reduce(Communicator& communicator, int64_t bytes) {
  Tensor x = Tensor::empty({bytes / static_cast<int64_t>(sizeof(float))});
  const std::span<float> values = x.span<float>();
  const auto sum = static_cast<float>(communicator.size());
  std::vector<double> times;
  for (int i = -kWarmUp; i < times_of(bytes); ++i) {
    std::ranges::fill(values, 1.0F);
    communicator.barrier().wait();
    const auto begin = Clock::now();
    communicator.all_reduce(x).wait();
    const std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
    check(std::ranges::count(values, sum) == std::ssize(values), "all_reduce: a sum is wrong");
    if (i >= 0) times.push_back(taken.count());
  }
  return times;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The median time for each size, on rank 0.
std::vector<double> run_rank(const TcpOptions& options, std::optional<detail::Listener> listener,
                             const std::vector<int64_t>& sizes) {
  TransportCommunicator communicator(make_tcp(options, std::move(listener)));
  std::vector<double> medians;
  for (const int64_t bytes : sizes) medians.push_back(median(time_all_reduce(communicator, bytes)));
  return medians;
}

/// Runs one process per rank; this process is rank 0. Throws Error if a rank fails.
std::vector<double> run_job(Wire wire, int ranks, const std::vector<int64_t>& sizes) {
  std::optional<detail::Listener> listener(Address{});
  TcpOptions options{.size = ranks, .master = listener->address(), .token = make_token(), .wire = wire};
  for (options.rank = ranks - 1; options.rank > 0; --options.rank)
    if (::fork() == 0) {
      listener.reset();
      int failed = 0;
      try {
        run_rank(options, {}, sizes);
      } catch (const std::exception& error) {
        fmt::print(stderr, "rank {}: {}\n", options.rank, error.what());
        failed = 1;
      }
      std::_Exit(failed);
    }
  const std::vector<double> medians = run_rank(options, std::move(listener), sizes);
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed |= status;
  check(failed == 0, "all_reduce: a rank failed");
  return medians;
}

/// OpenSSL's rate in bytes per second: AES-128-GCM of records of TLS, or AES-128-GMAC of long messages.
double rate_on_one_thread(Wire wire) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&::EVP_CIPHER_CTX_free)> cipher(::EVP_CIPHER_CTX_new(),
                                                                                 ::EVP_CIPHER_CTX_free);
  const unsigned char key[16] = {}, nonce[12] = {};
  std::vector<unsigned char> from(wire == Wire::tls ? 16 << 10 : 1 << 20), to(from.size());
  ::EVP_EncryptInit_ex(cipher.get(), ::EVP_aes_128_gcm(), nullptr, key, nonce);
  std::vector<double> rates;
  for (int i = 0; i < 2000; ++i) {
    int length = 0;
    const auto begin = Clock::now();
    ::EVP_EncryptInit_ex(cipher.get(), nullptr, nullptr, nullptr, nonce);
    ::EVP_EncryptUpdate(cipher.get(), wire == Wire::tls ? to.data() : nullptr, &length, from.data(),
                        static_cast<int>(from.size()));
    ::EVP_EncryptFinal_ex(cipher.get(), to.data(), &length);
    rates.push_back(static_cast<double>(from.size()) / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(rates);
}

/// The rate of each thread if as many of them work as there are cores.
double rate_of_cipher(Wire wire) {
  std::vector<double> rates(std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (double& rate : rates) threads.emplace_back([&rate, wire] { rate = rate_on_one_thread(wire); });
  for (std::thread& thread : threads) thread.join();
  return median(rates);
}

/// Prints the median of each wire and size over the turns. With a plain wire among several: also what the others add to
/// it, beside the time of their ciphers alone. Every byte that travels is worked on at both ends, by all cores
/// together.
void run(int ranks, const std::vector<int64_t>& sizes, const std::vector<Wire>& wires, int turns) {
  std::map<std::pair<Wire, size_t>, std::vector<double>> times;
  for (int turn = 0; turn < turns; ++turn)
    for (const Wire wire : wires) {
      const std::vector<double> medians = run_job(wire, ranks, sizes);
      for (size_t i = 0; i < sizes.size(); ++i) times[{wire, i}].push_back(medians[i]);
    }
  for (size_t i = 0; i < sizes.size(); ++i)
    for (const Wire wire : wires) {
      const double ms = median(times[{wire, i}]);
      fmt::print("{:5} n={} {:9} B  {:9.3f} ms  {:.3f} GB/s", to_string(wire), ranks, sizes[i], ms,
                 static_cast<double>(sizes[i]) / ms / 1e6);
      if (const auto plain = times.find({Wire::plain, i}); plain != times.end() && wire != Wire::plain) {
        const double worked = 4.0 * (ranks - 1) * static_cast<double>(sizes[i]);
        const double alone = 1e3 * worked / std::thread::hardware_concurrency() / rate_of_cipher(wire);
        fmt::print("  adds {:.3f} ms to plain; its cipher alone {:.3f} ms", ms - median(plain->second), alone);
      }
      fmt::print("\n");
    }
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  tern::wait_passively(argc, argv);
  CLI::App app("Times all-reduce of float32 between processes over TCP on loopback.");
  int ranks = 2;
  app.add_option("RANKS", ranks, "Processes")->required()->check(CLI::Range(1, 64));
  std::vector<int64_t> sizes = {100'000, 1'000'000, 25'000'000, 100'000'000};
  app.add_option("--bytes", sizes, "Sizes of what is reduced")->check(CLI::PositiveNumber);
  std::vector<tern::Wire> wires = {tern::Wire::mac};
  std::map<std::string, tern::Wire> words;
  for (const tern::Wire wire : {tern::Wire::plain, tern::Wire::mac, tern::Wire::tls}) words[to_string(wire)] = wire;
  app.add_option("--wire", wires, "What protects the bytes: plain, mac, tls, one after the other [mac]")
      ->transform(CLI::CheckedTransformer(words));
  int turns = 1;
  app.add_option("--turns", turns, "Turns of all wires; the median counts")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    tern::bench::run(ranks, sizes, wires, turns);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank 0: {}\n", error.what());
    return 1;
  }
}
