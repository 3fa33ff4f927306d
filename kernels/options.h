#pragma once

#include <cstdint>

// The options of operations. Users see these types under the names tern::Extent2 and so on, so this header has no
// kernels.

namespace tern::kernels {

/// How a matrix product reads its operands.
struct MatmulOptions {
  bool transpose_a = false;  ///< reads a with its last two dimensions exchanged
  bool transpose_b = false;
};

/// What divides the sum of an element over messages: their number, or the number of those that hold it.
enum class MeanOver : uint8_t { messages, senders };

/// Height and width. A single number sets both.
struct Extent2 {
  int64_t h = 1, w = 1;
  constexpr Extent2() = default;
  constexpr Extent2(int64_t both) : h(both), w(both) {}
  constexpr Extent2(int64_t height, int64_t width) : h(height), w(width) {}
  friend bool operator==(const Extent2&, const Extent2&) = default;
};

/// The geometry of a cross-correlation, as in PyTorch's conv2d.
struct ConvGeometry {
  Extent2 stride = 1;
  Extent2 padding = 0;  ///< zeros on each side
  Extent2 dilation = 1;
  int64_t groups = 1;
};

/// A pooling window over H and W, as in PyTorch, but with other defaults: a stride of 2, and averages without padding.
/// The layers MaxPool2d and AvgPool2d have PyTorch's.
struct PoolGeometry {
  Extent2 window = 2;
  Extent2 stride = 2;
  Extent2 padding = 0;             ///< on each side; at most half the window
  bool ceil_mode = false;          ///< also use windows that begin inside the input but end outside
  bool count_include_pad = false;  ///< averages count padding, but never what ceil_mode adds beyond it
};

/// The form in which gelu computes x · Φ(x). Φ is the distribution function of N(0, 1) (Hendrycks and Gimpel, 2016).
enum class GeluForm : uint8_t {
  exact,    ///< Φ(x) = (1 + erf(x/√2)) / 2: PyTorch's approximate='none'
  by_tanh,  ///< Φ(x) ≈ (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2: PyTorch's approximate='tanh'
};

/// The random choice of the elements to drop. It is a pure function of this and the sample's index, so no mask is
/// stored.
struct DropoutDraw {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t layer = 0;
  double probability = 0.5;
};

/// Options of a batch normalisation.
struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< running = (1 - momentum)·running + momentum·batch (variance unbiased), as in PyTorch
  bool relu = false;      ///< applies max(·, 0) last
};

/// Local response normalisation across channels (Krizhevsky et al., 2012) with PyTorch's parameters: y = x / (k +
/// alpha/size · Σ x²)^beta. The sum is over `size` channels around each channel.
struct LocalResponseNormOptions {
  int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};

/// Rows and columns around the last two dimensions.
struct Border {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

}  // namespace tern::kernels
