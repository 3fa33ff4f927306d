#include "tern/kernels/cpu/convolution.h"

#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/convolution_direct.h"
#include "tern/kernels/cpu/winograd.h"

namespace tern::cpu {
namespace {

/// `tensor` as the kernels here read it: f32, channels-last.
Tensor readable(const Tensor& tensor) { return tensor.to(DType::f32).to(MemoryFormat::channels_last); }

/// Calls `compute` with `tensor`, or with an f32 channels-last stand-in that is converted back.
template <class Compute>
void write_through(Tensor& tensor, Compute compute) {
  if (tensor.dtype() == DType::f32 && tensor.format() == MemoryFormat::channels_last) return compute(tensor);
  Tensor stand_in = Tensor::empty(tensor.shape(), {.format = MemoryFormat::channels_last});
  compute(stand_in);
  tensor.copy_from(stand_in);
}

/// db = the sum of dy over every pixel of every image.
void bias_gradient(const Tensor& dy, Tensor& db) {
  const int64_t images = dy.size(0), channels = dy.size(1), pixels = dy.size(2) * dy.size(3);
  const int64_t parts = std::min<int64_t>(thread_count(), images);
  const Tensor sums = Tensor::empty({parts, channels});
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      float* sum = sums.data<float>() + part * channels;
      std::fill_n(sum, channels, 0.0f);
      for (int64_t i = images * part / parts * pixels; i < images * (part + 1) / parts * pixels; ++i) {
        const float* pixel = dy.data<float>() + i * channels;
        for (int64_t c = 0; c < channels; ++c) sum[c] += pixel[c];
      }
    }
  });
  std::fill_n(db.data<float>(), channels, 0.0f);
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t c = 0; c < channels; ++c) db.data<float>()[c] += sums.data<float>()[part * channels + c];
  }
}

/// Whether Winograd's algorithm computes this convolution, by its geometry alone.
bool by_winograd(ConvAlgorithm algorithm, const Shape& w, const ConvGeometry& geometry) {
  const bool applies = winograd_applies(w, geometry);
  check(applies || algorithm != ConvAlgorithm::winograd, "conv2d: Winograd's algorithm does not apply to weights ", w);
  return applies && algorithm != ConvAlgorithm::direct;
}

}  // namespace

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, bool relu, Tensor& y,
            ConvAlgorithm algorithm) {
  const auto compute = by_winograd(algorithm, w.shape(), geometry) ? winograd_forward : direct_forward;
  write_through(y, [&](Tensor& out) { compute(readable(x), w, bias, geometry, relu, out); });
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx,
                          ConvAlgorithm algorithm) {
  const auto compute = by_winograd(algorithm, w.shape(), geometry) ? winograd_backward_data : direct_backward_data;
  write_through(dx, [&](Tensor& out) { compute(readable(dy), w, geometry, out); });
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db,
                             ConvAlgorithm algorithm) {
  const Tensor gradient = readable(dy);
  const auto compute =
      by_winograd(algorithm, dw.shape(), geometry) ? winograd_backward_weights : direct_backward_weights;
  compute(gradient, readable(x), geometry, dw);
  if (db.defined()) bias_gradient(gradient, db);
}

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, bool relu, Tensor& y) {
  conv2d(x, w, bias, geometry, relu, y, ConvAlgorithm::automatic);
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  conv2d_backward_data(dy, w, geometry, dx, ConvAlgorithm::automatic);
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db) {
  conv2d_backward_weights(dy, x, geometry, dw, db, ConvAlgorithm::automatic);
}

}  // namespace tern::cpu
