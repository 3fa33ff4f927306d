#pragma once

#include "tern/kernels/kernel.h"

// Elementwise operations. Outputs have the shape, dtype and format of x and may be x itself. Backward
// functions take what the forward saved: its output y where that suffices, else its input x.

namespace tern::kernels {

/// y = max(x, 0). NaN stays NaN, and its gradient passes, here and in every fused relu: so a broken model shows.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> relu{"relu"};
/// dx = 0 if y <= 0, else dy, also if y is NaN
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> relu_backward{"relu_backward"};
/// y = x where x > 0, else slope·x
inline constinit Kernel<void(const Tensor& x, double slope, Tensor& y)> leaky_relu{"leaky_relu"};
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, double slope, Tensor& dx)> leaky_relu_backward{
    "leaky_relu_backward"};
/// y = 1 / (1 + exp(-x))
inline constinit Kernel<void(const Tensor& x, Tensor& y)> sigmoid{"sigmoid"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> sigmoid_backward{"sigmoid_backward"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> tanh{"tanh"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> tanh_backward{"tanh_backward"};

/// How gelu computes x · Φ(x), Φ the distribution function of N(0, 1) (Hendrycks and Gimpel, 2016).
enum class GeluForm : uint8_t {
  exact,    ///< Φ(x) = (1 + erf(x/√2)) / 2: PyTorch's approximate='none'
  by_tanh,  ///< Φ(x) ≈ (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2: PyTorch's approximate='tanh'
};
inline constexpr double kGeluScale = 0.7978845608028654, kGeluCube = 0.044715;  ///< √(2/π), and the factor of x³
/// y = x · Φ(x). NaN for NaN and for -∞.
inline constinit Kernel<void(const Tensor& x, GeluForm, Tensor& y)> gelu{"gelu"};
/// dx = dy · (Φ(x) + x · Φ'(x))
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, GeluForm, Tensor& dx)> gelu_backward{"gelu_backward"};

/// y = scale·x
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> scale{"scale"};
/// y += x, same shape; formats may differ
inline constinit Kernel<void(const Tensor& x, Tensor& y)> accumulate{"accumulate"};

// y has the shape both operands broadcast to, and the format of the operand with that shape (a's if both).
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> add{"add"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> subtract{"subtract"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> multiply{"multiply"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> divide{"divide"};

}  // namespace tern::kernels
