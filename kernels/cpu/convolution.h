#pragma once

#include <atomic>

#include "tern/core/parallel.h"
#include "tern/core/tensor.h"
#include "tern/kernels/convolution.h"

// The algorithms of convolutions on the CPU, and the choice among them.

namespace tern::cpu {

using kernels::ConvGeometry;

/// How a convolution is computed. `automatic` chooses by shape and processor alone.
enum class ConvAlgorithm : uint8_t { automatic, direct, winograd, onednn };

// The kernels of kernels/convolution.h by one algorithm, for tests and measurements. Throws if Winograd's does not
// apply; if oneDNN refuses, tern's own algorithms stand in.
void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y,
            ConvAlgorithm);
void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx, ConvAlgorithm);
void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db,
                             ConvAlgorithm);

// Convolutions of any geometry as matrix products whose left factor is read from the image where it lies: a row of the
// kernel meets contiguous channels-last pixels. f32; images channels-last, weights OIHW.

void direct_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void direct_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void direct_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw);

// Winograd's convolutions (Lavin and Gray, 2015): with 36 products for 16 outputs of a 3x3 kernel, 4 of a 5x5, instead
// of 144 and 100. f32; images channels-last, weights OIHW; stride, dilation and groups 1, padding below the kernel's
// extent, at least a vector of channels on both sides. The rounding error is some ten times that of direct sums, and a
// NaN or an infinity spreads over the tile it lies in.

/// Whether these functions can compute a convolution with weights of this shape.
bool winograd_applies(const Shape& w, const ConvGeometry& geometry);

void winograd_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void winograd_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void winograd_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw);

// Convolutions by oneDNN, for what its instructions do best: bf16 products. Images f32 or bf16 in either format,
// weights and their gradient f32 OIHW. Each returns false, and writes nothing, where oneDNN has no such primitive.

/// Whether oneDNN computes bf16 products with this processor's own instructions (AVX512-BF16 or AMX).
bool onednn_has_bf16();

bool onednn_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, Tensor& y);
bool onednn_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
/// db may be undefined.
bool onednn_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db);

/// Scratch memory for the bodies of one `parallel_for`, taken from the allocator before the loop starts: how much a
/// step takes then does not depend on which bodies happen to run at the same time.
class ThreadScratch {
 public:
  /// `floats` for each of `thread_count()` bodies.
  explicit ThreadScratch(int64_t floats)
      : stride_((floats + kAlignment - 1) / kAlignment * kAlignment),
        memory_(Tensor::empty({thread_count() * stride_})) {}

  /// One body's share, aligned to 64 bytes; each body calls it once.
  float* take() { return memory_.data<float>() + next_++ * stride_; }

 private:
  static constexpr int64_t kAlignment = 16;

  int64_t stride_;
  Tensor memory_;
  std::atomic<int64_t> next_ = 0;
};

}  // namespace tern::cpu
