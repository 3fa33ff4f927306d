#include <fmt/format.h>

#include "tern/kernels/normalization.h"
#include "tern/kernels/pooling.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

Tensor activations(const Shape& shape) { return Tensor::full(shape, 1, {.format = MemoryFormat::channels_last}); }

/// Appends one pass of a layer over `x`. The rate counts the bytes of x.
template <class Prepare>
void add(std::vector<Case>& cases, const char* name, const Shape& x, int threads, Prepare prepare) {
  cases.push_back({fmt::format("{}/{}x{}@{}/b{}/t{}", name, x[1], x[2], x[3], x[0], threads),
                   threads,
                   [=]() -> std::function<void()> { return prepare(activations(x)); },
                   {static_cast<double>(x.numel()) * sizeof(float), "GB/s of x"}});
}

void add_pooling(std::vector<Case>& cases, const Shape& shape, int threads) {
  constexpr kernels::PoolGeometry kGeometry{.window = 3, .stride = 2, .ceil_mode = true};
  const Shape pooled = kernels::pool2d_output_shape(shape, kGeometry);
  const Tensor y = activations(pooled);
  const Tensor where = Tensor::zeros(pooled, {.dtype = DType::u8, .format = MemoryFormat::channels_last});
  add(cases, "max_pool/forward", shape, threads, [=](Tensor x) {
    return [=]() mutable { kernels::max_pool2d(x, kGeometry, const_cast<Tensor&>(y), const_cast<Tensor&>(where)); };
  });
  add(cases, "max_pool/backward", shape, threads,
      [=](Tensor x) { return [=]() mutable { kernels::max_pool2d_backward(y, where, kGeometry, x); }; });
}

void add_batch_norm(std::vector<Case>& cases, const Shape& shape, int threads) {
  const Shape channels{shape[1]};
  const kernels::BatchNormParameters parameters{Tensor::full(channels, 1), Tensor::zeros(channels),
                                                Tensor::zeros(channels), Tensor::full(channels, 1)};
  const Tensor mean = Tensor::zeros(channels), deviation = Tensor::full(channels, 1);
  add(cases, "batch_norm/forward", shape, threads, [=](Tensor x) {
    return [=, y = Tensor::empty_like(x), m = mean, d = deviation]() mutable {
      Tensor none;
      kernels::batch_norm_training(x, {}, parameters, {.relu = true}, y, none, m, d);
    };
  });
  add(cases, "batch_norm/backward", shape, threads, [=](Tensor x) {
    return [=, dx = Tensor::empty_like(x), dgamma = mean.clone(), dbeta = mean.clone()]() mutable {
      Tensor none;
      kernels::batch_norm_backward(x, {x, x, {}, parameters.gamma, mean, deviation}, true, dx, dgamma, dbeta, none);
    };
  });
}

void add_local_response_norm(std::vector<Case>& cases, const Shape& shape, int threads) {
  constexpr kernels::LocalResponseNormOptions kOptions{.size = 9, .alpha = 1e-3};
  add(cases, "local_response_norm/forward", shape, threads, [=](Tensor x) {
    return [=, y = Tensor::empty_like(x), d = Tensor::empty_like(x)]() mutable {
      kernels::local_response_norm(x, kOptions, y, d);
    };
  });
  add(cases, "local_response_norm/backward", shape, threads, [=](Tensor x) {
    return [=, dx = Tensor::empty_like(x)]() mutable { kernels::local_response_norm_backward(x, x, x, kOptions, dx); };
  });
}

}  // namespace

void add_layers(std::vector<Case>& cases) {
  for (const int threads : kThreads) {
    add_pooling(cases, {64, 64, 24, 24}, threads);
    add_batch_norm(cases, {64, 64, 32, 32}, threads);
    add_batch_norm(cases, {64, 512, 4, 4}, threads);
    add_local_response_norm(cases, {64, 64, 12, 12}, threads);
  }
}

}  // namespace tern::bench
