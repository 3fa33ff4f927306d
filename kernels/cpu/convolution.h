#pragma once

#include <atomic>

#include "tern/core/parallel.h"
#include "tern/core/tensor.h"
#include "tern/kernels/convolution.h"

// The algorithms of convolutions on the CPU, and the choice among them.

namespace tern::cpu {

using kernels::ConvGeometry;

/// The algorithm of a convolution. `automatic` chooses from the shape, the dtype and the processor only.
enum class ConvAlgorithm : uint8_t { automatic, direct, winograd, depthwise, onednn };

// The kernels of kernels/convolution.h with a given algorithm, for tests and measurements. Throws if the algorithm does
// not apply. If oneDNN has no primitive, tern's own algorithms take its place.
void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y,
            ConvAlgorithm);
void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx, ConvAlgorithm);
void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db,
                             ConvAlgorithm);

// Convolutions of any geometry as matrix products. The left factor is read from the image without a copy: a row of the
// kernel covers contiguous channels-last pixels. f32. Images are channels-last, weights OIHW.

void direct_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void direct_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void direct_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw);

// Winograd's convolutions (Lavin and Gray, 2015). For 16 outputs, a 3x3 kernel takes 36 products in place of 144, and a
// 5x5 kernel 64 in place of 400. f32. Images are channels-last, weights OIHW. Stride, dilation and groups must be 1,
// and the padding less than the extent of the kernel. Both sides need at least as many channels as a vector has floats.
// The rounding errors are 5 to 8 times those of direct sums, and 20 to 50 times in the gradient of the weights. A NaN
// or an infinity spreads over its tile.

/// Whether these functions can compute a convolution with weights of shape w.
bool winograd_applies(const Shape& w, const ConvGeometry& geometry);

void winograd_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void winograd_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void winograd_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw);

// Depthwise convolutions: each channel has a kernel of its own. f32. Images are channels-last, weights [C, 1, kh, kw].

bool depthwise_applies(const Shape& w, const ConvGeometry& geometry);

void depthwise_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void depthwise_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void depthwise_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw);

// Convolutions by oneDNN, used for bf16 products. Images are f32 or bf16 in either format. Weights and their gradient
// are f32 OIHW. If oneDNN has no primitive for a convolution, or a wrong one, these return false and write nothing. So
// do they if the processor is not x86.

/// Whether oneDNN computes bf16 products with instructions of this processor (AVX512-BF16 or AMX).
bool onednn_has_bf16();

bool onednn_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, Tensor& y);
bool onednn_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
/// db may be undefined.
bool onednn_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db);

/// Scratch memory for the bodies of one `parallel_for`, allocated before the loop starts. The memory that a step uses
/// then does not depend on which bodies run at the same time.
class ThreadScratch {
 public:
  /// `floats` for each of `thread_count()` bodies.
  explicit ThreadScratch(int64_t floats)
      : stride_((floats + kAlignment - 1) / kAlignment * kAlignment),
        memory_(Tensor::empty({thread_count() * stride_})) {}

  /// Returns the memory of one body, aligned to 64 bytes. Each body calls it once.
  float* take() { return memory_.data<float>() + next_++ * stride_; }

 private:
  static constexpr int64_t kAlignment = 16;

  int64_t stride_;
  Tensor memory_;
  std::atomic<int64_t> next_ = 0;
};

}  // namespace tern::cpu
