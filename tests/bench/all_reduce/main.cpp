// Measures all-reduce between processes over TCP on loopback, as users of gloo or MPI measure theirs.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

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

void run_rank(const TcpOptions& options, std::optional<detail::Listener> listener, const std::vector<int64_t>& sizes) {
  TransportCommunicator communicator(make_tcp(options, std::move(listener)));
  for (const int64_t bytes : sizes) {
    std::vector<double> times = time_all_reduce(communicator, bytes);
    if (options.rank > 0) continue;
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    fmt::print("tern-tcp n={} {:9} B  ms min {:9.3f} med {:9.3f} max {:9.3f}  algbw med {:.3f} GB/s\n", options.size,
               bytes, times.front(), median, times.back(), static_cast<double>(bytes) / median / 1e6);
    std::fflush(stdout);
  }
}

/// Runs one process per rank. Returns 0 if all ranks succeed.
int run(int ranks, const std::vector<int64_t>& sizes) {
  std::optional<detail::Listener> listener(Address{});
  TcpOptions options{.size = ranks, .master = listener->address(), .token = make_token()};
  for (options.rank = ranks - 1; options.rank > 0; --options.rank)
    if (::fork() == 0) {
      listener.reset();
      break;
    }
  int failed = 0;
  try {
    run_rank(options, std::move(listener), sizes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", options.rank, error.what());
    failed = 1;
  }
  if (options.rank > 0) return failed;
  for (int status = 0; ::wait(&status) > 0;) failed |= status != 0;
  return failed;
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
  CLI11_PARSE(app, argc, argv);
  return tern::bench::run(ranks, sizes);
}
