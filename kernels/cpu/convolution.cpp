#include "tern/kernels/cpu/convolution.h"

#include "tern/core/error.h"
#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

Tensor channels_last(const Tensor& tensor, DType dtype) { return tensor.to(dtype).to(MemoryFormat::channels_last); }

/// Calls `compute` with `tensor` if it is channels-last and of `dtype`. Otherwise calls it with a channels-last tensor
/// of `dtype` and copies the result to `tensor`.
template <class Compute>
void write_through(Tensor& tensor, DType dtype, Compute compute) {
  if (tensor.dtype() == dtype && tensor.format() == MemoryFormat::channels_last) return compute(tensor);
  Tensor stand_in = Tensor::empty(tensor.shape(), {.dtype = dtype, .format = MemoryFormat::channels_last});
  compute(stand_in);
  tensor.copy_from(stand_in);
}

/// db = the sum of dy over the pixels of every image, then over the images.
void bias_gradient(const Tensor& dy, Tensor& db) {
  const int64_t images = dy.size(0), channels = dy.size(1);
  const Tensor sums = Tensor::empty({images, channels});
  column_sums(dy.data<float>(), images, dy.size(2) * dy.size(3), channels, sums.data<float>());
  column_sums(sums.data<float>(), 1, images, channels, db.data<float>());
}

/// The algorithm of tern's own: depthwise or Winograd if one applies, because it was faster on nearly every shape
/// measured, and direct if not. LibraryRules can rule Winograd out.
ConvAlgorithm own_algorithm(const Shape& w, const ConvGeometry& geometry) {
  if (depthwise_applies(w, geometry)) return ConvAlgorithm::depthwise;
  const bool winograd = winograd_applies(w, geometry) && !kernels::library_rules({}).direct_convolutions;
  return winograd ? ConvAlgorithm::winograd : ConvAlgorithm::direct;
}

/// The algorithm for images of `dtype`. For bf16, it is oneDNN if the processor has bf16 products. Otherwise it is one
/// of tern's own in f32.
ConvAlgorithm choose(ConvAlgorithm algorithm, DType dtype, const Shape& w, const ConvGeometry& geometry) {
  check(algorithm != ConvAlgorithm::winograd || winograd_applies(w, geometry),
        "conv2d: Winograd's algorithm does not apply to weights ", w);
  check(algorithm != ConvAlgorithm::depthwise || depthwise_applies(w, geometry), "conv2d: weights ", w, " in ",
        geometry.groups, " groups are not depthwise");
  if (algorithm != ConvAlgorithm::automatic) return algorithm;
  return dtype == DType::bf16 && onednn_has_bf16() ? ConvAlgorithm::onednn : own_algorithm(w, geometry);
}

/// The dtype in which an algorithm computes.
DType computing_dtype(ConvAlgorithm algorithm, DType dtype) {
  return algorithm == ConvAlgorithm::onednn ? dtype : DType::f32;
}

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, bool relu, Tensor& y) {
  cpu::conv2d(x, w, bias, geometry, relu, y, ConvAlgorithm::automatic);
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  cpu::conv2d_backward_data(dy, w, geometry, dx, ConvAlgorithm::automatic);
}

void conv2d_backward_data_add(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  Tensor more = Tensor::empty_like(dx);
  conv2d_backward_data(dy, w, geometry, more);
  kernels::accumulate.on(Target::cpu)(more, dx);
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db) {
  cpu::conv2d_backward_weights(dy, x, geometry, dw, db, ConvAlgorithm::automatic);
}

}  // namespace

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, bool relu, Tensor& y,
            ConvAlgorithm wanted) {
  if (y.numel() == 0) return;
  const ConvAlgorithm algorithm = choose(wanted, x.dtype(), w.shape(), geometry);
  const DType dtype = computing_dtype(algorithm, x.dtype());
  bool done = true;
  write_through(y, dtype, [&](Tensor& out) {
    const Tensor in = channels_last(x, dtype);
    switch (algorithm) {
      case ConvAlgorithm::onednn:
        done = onednn_forward(in, w, bias, geometry, out);
        if (done && relu) kernels::relu.on(Target::cpu)(out, out);  // oneDNN's own relu loses NaN
        break;
      case ConvAlgorithm::winograd: winograd_forward(in, w, bias, geometry, relu, out); break;
      case ConvAlgorithm::depthwise: depthwise_forward(in, w, bias, geometry, relu, out); break;
      default: direct_forward(in, w, bias, geometry, relu, out);
    }
  });
  if (!done) conv2d(x, w, bias, geometry, relu, y, own_algorithm(w.shape(), geometry));
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx,
                          ConvAlgorithm wanted) {
  if (dx.numel() == 0) return;
  const ConvAlgorithm algorithm = choose(wanted, dy.dtype(), w.shape(), geometry);
  const DType dtype = computing_dtype(algorithm, dy.dtype());
  bool done = true;
  write_through(dx, dtype, [&](Tensor& out) {
    const Tensor gradient = channels_last(dy, dtype);
    switch (algorithm) {
      case ConvAlgorithm::onednn: done = onednn_backward_data(gradient, w, geometry, out); break;
      case ConvAlgorithm::winograd: winograd_backward_data(gradient, w, geometry, out); break;
      case ConvAlgorithm::depthwise: depthwise_backward_data(gradient, w, geometry, out); break;
      default: direct_backward_data(gradient, w, geometry, out);
    }
  });
  if (!done) conv2d_backward_data(dy, w, geometry, dx, own_algorithm(w.shape(), geometry));
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw, Tensor& db,
                             ConvAlgorithm wanted) {
  if (x.numel() == 0) {
    dw.fill(0);
    if (db.defined()) db.fill(0);
    return;
  }
  const ConvAlgorithm algorithm = choose(wanted, x.dtype(), dw.shape(), geometry);
  const DType dtype = computing_dtype(algorithm, x.dtype());
  const Tensor gradient = channels_last(dy, dtype), in = channels_last(x, dtype);
  switch (algorithm) {
    case ConvAlgorithm::onednn:
      if (!onednn_backward_weights(gradient, in, geometry, dw, db))
        conv2d_backward_weights(dy, x, geometry, dw, db, own_algorithm(dw.shape(), geometry));
      return;
    case ConvAlgorithm::winograd: winograd_backward_weights(gradient, in, geometry, dw); break;
    case ConvAlgorithm::depthwise: depthwise_backward_weights(gradient, in, geometry, dw); break;
    default: direct_backward_weights(gradient, in, geometry, dw);
  }
  if (db.defined()) bias_gradient(gradient, db);
}

void provide_convolution() {
  kernels::conv2d.provide(Target::cpu, conv2d);
  kernels::conv2d_backward_data.provide(Target::cpu, conv2d_backward_data);
  kernels::conv2d_backward_data_add.provide(Target::cpu, conv2d_backward_data_add);
  kernels::conv2d_backward_weights.provide(Target::cpu, conv2d_backward_weights);
}

}  // namespace tern::cpu
