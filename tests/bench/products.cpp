#include <fmt/format.h>

#include "tern/kernels/matmul.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

/// Adds the three products of a linear layer at batch size 64.
void add_linear(std::vector<Case>& cases, int64_t in, int64_t out, int threads) {
  constexpr int64_t kBatch = 64;
  const Work work{2.0 * kBatch * static_cast<double>(in * out), "GFLOP/s"};
  const auto add = [&](const char* pass, auto run) {
    cases.push_back({fmt::format("linear/{}/{}x{}/b{}/t{}", pass, in, out, kBatch, threads), threads,
                     [=] {
                       return [=, x = Tensor::full({kBatch, in}, 1), w = Tensor::full({out, in}, 1),
                               y = Tensor::full({kBatch, out}, 1)]() mutable { run(x, w, y); };
                     },
                     work});
  };
  add("forward", [](Tensor& x, Tensor& w, Tensor& y) { kernels::linear(x, w, {}, false, y); });
  add("backward_data", [](Tensor& x, Tensor& w, Tensor& y) { kernels::linear_backward_data(y, w, x); });
  add("backward_weights", [](Tensor& x, Tensor& w, Tensor& y) {
    Tensor none;
    kernels::linear_backward_weights(y, x, w, none);
  });
}

}  // namespace

void add_products(std::vector<Case>& cases) {
  for (const int threads : kThreads) {
    add_linear(cases, 4096, 4096, threads);
    add_linear(cases, 2450, 500, threads);
    cases.push_back({fmt::format("matmul/2048x2048x2048/t{}", threads),
                     threads,
                     [] {
                       const Shape square{2048, 2048};
                       return [a = Tensor::full(square, 1), b = Tensor::full(square, 1),
                               y = Tensor::empty(square)]() mutable { kernels::matmul(a, b, {}, y); };
                     },
                     {2.0 * 2048 * 2048 * 2048, "GFLOP/s"}});
  }
}

}  // namespace tern::bench
