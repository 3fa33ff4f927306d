#pragma once

#include "tern/kernels/kernel.h"

// Elementwise operations. Outputs have the shape, dtype and format of x and may be x itself. Backward functions take a
// tensor that the forward saved: its output y if that suffices, otherwise its input x.

namespace tern::kernels {

/// y = max(x, 0). NaN stays NaN and its gradient passes, here and in every fused relu, so that a broken model is
/// noticed.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> relu{"relu"};
/// dx = 0 if y <= 0; otherwise dy, also if y is NaN.
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> relu_backward{"relu_backward"};
/// y = x if x > 0; otherwise slope·x.
inline constinit Kernel<void(const Tensor& x, double slope, Tensor& y)> leaky_relu{"leaky_relu"};
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, double slope, Tensor& dx)> leaky_relu_backward{
    "leaky_relu_backward"};
/// y = 1 / (1 + exp(-x))
inline constinit Kernel<void(const Tensor& x, Tensor& y)> sigmoid{"sigmoid"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> sigmoid_backward{"sigmoid_backward"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> tanh{"tanh"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> tanh_backward{"tanh_backward"};

/// The form in which gelu computes x · Φ(x). Φ is the distribution function of N(0, 1) (Hendrycks and Gimpel, 2016).
enum class GeluForm : uint8_t {
  exact,    ///< Φ(x) = (1 + erf(x/√2)) / 2: PyTorch's approximate='none'
  by_tanh,  ///< Φ(x) ≈ (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2: PyTorch's approximate='tanh'
};
inline constexpr double kGeluScale = 0.7978845608028654, kGeluCube = 0.044715;  ///< √(2/π), and the factor of x³
/// y = x · Φ(x). The result is NaN if x is NaN or -∞.
inline constinit Kernel<void(const Tensor& x, GeluForm, Tensor& y)> gelu{"gelu"};
/// dx = dy · (Φ(x) + x · Φ'(x))
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, GeluForm, Tensor& dx)> gelu_backward{"gelu_backward"};

/// y = scale·x
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> scale{"scale"};
/// y += x. The shapes are the same; the formats may differ.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> accumulate{"accumulate"};

// y has the shape that both operands broadcast to, and the format of the operand that has this shape (a's format if
// both have it).
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> add{"add"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> subtract{"subtract"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> multiply{"multiply"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> divide{"divide"};

}  // namespace tern::kernels
