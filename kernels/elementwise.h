#pragma once

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

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

inline constexpr double kGeluScale = 0.7978845608028654, kGeluCube = 0.044715;  ///< √(2/π), and the factor of x³
/// y = x · Φ(x). The result is NaN if x is NaN or -∞.
inline constinit Kernel<void(const Tensor& x, GeluForm, Tensor& y)> gelu{"gelu"};
/// dx = dy · (Φ(x) + x · Φ'(x))
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, GeluForm, Tensor& dx)> gelu_backward{"gelu_backward"};

inline constinit Kernel<void(const Tensor& x, Tensor& y)> silu{"silu"};  ///< y = x / (1 + exp(-x))
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, Tensor& dx)> silu_backward{"silu_backward"};

// The gradients of exp, log and sqrt are products and quotients of dy, x and y.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> exp{"exp"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> log{"log"};  ///< -infinity for 0, NaN for negative x
inline constinit Kernel<void(const Tensor& x, Tensor& y)> sqrt{"sqrt"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> abs{"abs"};
/// dx = dy if x > 0, -dy if x < 0, otherwise 0.
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, Tensor& dx)> abs_backward{"abs_backward"};
/// y = x^exponent, as C++'s std::pow.
inline constinit Kernel<void(const Tensor& x, double exponent, Tensor& y)> pow{"pow"};
/// dx = dy · exponent · x^(exponent - 1). It is 0 for exponent 0.
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, double exponent, Tensor& dx)> pow_backward{
    "pow_backward"};

/// The limits of clamp.
struct Limits {
  double low, high;
};
/// y = min(max(x, low), high). NaN stays NaN.
inline constinit Kernel<void(const Tensor& x, Limits, Tensor& y)> clamp{"clamp"};
/// dx = dy if low <= x <= high, otherwise 0.
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, Limits, Tensor& dx)> clamp_backward{"clamp_backward"};

/// y = scale·x
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> scale{"scale"};
/// y += x. The shapes are the same; the formats may differ.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> accumulate{"accumulate"};
/// sum += x, and count += 1 if x is not 0. All are f32, with one shape and format.
inline constinit Kernel<void(const Tensor& x, Tensor& sum, Tensor& count)> accumulate_nonzero{"accumulate_nonzero"};
inline void check_accumulate_nonzero(const Tensor& x, const Tensor& total, const Tensor& count) {
  check_alike("accumulate_nonzero", x, total);
  check_alike("accumulate_nonzero", x, count);
  check(x.dtype() == DType::f32, "accumulate_nonzero: elements are ", x.dtype(), ", expected f32");
}

// y has the shape that both operands broadcast to, and the format of the operand that has this shape (a's format if
// both have it).
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> add{"add"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> subtract{"subtract"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> multiply{"multiply"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> divide{"divide"};
/// NaN if a or b is NaN.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> maximum{"maximum"};
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> minimum{"minimum"};
/// y = 1 if a == b, otherwise 0.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> equal{"equal"};
/// y = dy if a > b, or if one of them is NaN; dy/2 if they are equal; 0 if a < b: the gradient of maximum(a, b) by a,
/// and of minimum(a, b) by b. All operands broadcast to the shape of y.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, const Tensor& dy, Tensor& y)> greater_share{
    "greater_share"};
/// y = a if mask != 0, otherwise b. mask is u8. All operands broadcast to the shape of y.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, const Tensor& mask, Tensor& y)> select{"select"};

}  // namespace tern::kernels
