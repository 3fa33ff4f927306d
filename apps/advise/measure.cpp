#include "tern/apps/advise/measure.h"

#include <algorithm>
#include <chrono>

#include "tern/core/stopwatch.h"
#include "tern/dist/comm/tcp.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/trainer/job/launch.h"

namespace tern::advise {
namespace {

using namespace trainer;

constexpr int kWarmUp = 2, kFewest = 3;

/// For each entry, the largest value of all ranks.
std::vector<double> slowest(Communicator& c, const std::vector<double>& values) {
  Tensor all = Tensor::from<double>({std::ssize(values)}, values);
  c.all_reduce(all, Reduction::max).wait();
  return all.to_vector<double>();
}

}  // namespace

std::vector<double> measure(Communicator& c, double budget, const std::function<std::vector<double>()>& step) {
  std::vector<std::vector<double>> found;
  const auto begin = std::chrono::steady_clock::now();
  int steps = kMostMeasured;
  for (int i = 0; i < steps; ++i) {
    c.barrier().wait();
    const std::vector<double> values = slowest(c, step());
    if (i + 1 == kWarmUp) {
      const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - begin;
      const int fit = static_cast<int>(kWarmUp * budget / slowest(c, {so_far.count()}).front());
      steps = kWarmUp + std::clamp(fit, kFewest, kMostMeasured - kWarmUp);
    }
    if (i < kWarmUp) continue;
    found.resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) found[k].push_back(values[k]);
  }
  std::vector<double> medians;
  for (const std::vector<double>& values : found) medians.push_back(median(values));
  return medians;
}

double measure_seconds(Communicator& c, double budget, const std::function<void()>& step) {
  return measure(c, budget, [&]() -> std::vector<double> { return {seconds_of(step)}; }).front();
}

double seconds_of(const std::function<void()>& work) {
  double seconds = 0;
  {
    const Stopwatch watch(seconds);
    work();
  }
  return seconds;
}

void side_by_side(int ranks, int threads, const std::function<void(Communicator&)>& body) {
  run_rank_threads(ranks, threads, [&](std::unique_ptr<Transport> transport) {
    TransportCommunicator communicator(std::move(transport));
    body(communicator);
  });
}

LinkCost loopback_cost(double budget) {
  constexpr int64_t kBytes = 4 << 20;
  detail::Listener listener(Address{});
  const Address master = listener.address();
  const JobToken token = make_token();
  LinkCost cost;
  run_rank_threads(2, 1, [&](int rank) {
    const TcpOptions options = {.rank = rank, .size = 2, .master = master, .token = token, .wire = Wire::mac};
    TransportCommunicator c(rank == 0 ? make_tcp(options, std::move(listener)) : make_tcp(options));
    const auto seconds_of = [&](int64_t bytes) {
      const Tensor sent = Tensor::zeros({bytes}, {.dtype = DType::u8});
      Tensor received = sent.clone();
      return measure_seconds(c, budget, [&] { c.shift(sent, received).wait(); });
    };
    const double hop = seconds_of(8), seconds = seconds_of(kBytes);
    if (rank == 0) cost = {.hop = hop, .byte = std::max(0.0, seconds - hop) / kBytes};
  });
  return cost;
}

}  // namespace tern::advise
