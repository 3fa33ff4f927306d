// Measures tern's all-reduce over MPI beside a bare MPI_Allreduce, in turn, between the processes that mpirun starts.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/comm/mpi.h"

namespace tern::bench {
namespace {

constexpr int kWarmUp = 5;

int times_of(int64_t bytes) { return bytes <= 1'000'000 ? 500 : bytes <= 10'000'000 ? 100 : 20; }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Milliseconds from a common start to the end of the operation on this rank.
template <class Body>
double time_of(Tensor& x, const Body& all_reduce) {
  const std::span<float> values = x.span<float>();
  std::ranges::fill(values, 1.0F);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  all_reduce();
  const std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
  check(std::ranges::count(values, values[0]) == std::ssize(values), "all_reduce: a sum is wrong");
  return taken.count();
}

void run(Communicator& communicator, int64_t bytes) {
  Tensor x = Tensor::empty({bytes / static_cast<int64_t>(sizeof(float))});
  std::vector<double> ours, bare;
  const auto by_tern = [&] { communicator.all_reduce(x).wait(); };
  const auto by_mpi = [&] {
    MPI_Allreduce(MPI_IN_PLACE, x.raw_data(), static_cast<int>(x.numel()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  for (int i = -kWarmUp; i < times_of(bytes); ++i) {
    const bool first = i % 2 == 0;
    const double a = first ? time_of(x, by_tern) : 0, b = time_of(x, by_mpi);
    if (i < 0) continue;
    ours.push_back(first ? a : time_of(x, by_tern));
    bare.push_back(b);
  }
  if (communicator.rank() == 0)
    fmt::print("n={} {:9} B  tern {:9.4f} ms  MPI_Allreduce {:9.4f} ms  ratio {:.2f}\n", communicator.size(), bytes,
               median(ours), median(bare), median(ours) / median(bare));
}

}  // namespace
}  // namespace tern::bench

int main(int argc, char** argv) {
  CLI::App app("Times all-reduce of float32 over MPI, by tern and by a bare MPI_Allreduce in turn.");
  std::vector<int64_t> sizes = {100'000, 1'000'000, 10'000'000, 100'000'000};
  app.add_option("--bytes", sizes, "Sizes of what is reduced")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto communicator = tern::make_mpi();
  for (const int64_t bytes : sizes) tern::bench::run(*communicator, bytes);
}
