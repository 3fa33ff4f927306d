#include "tern/kernels/elementwise.h"

#include <cmath>
#include <numbers>
#include <type_traits>

#include "tern/core/visit.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

/// y = f(x)
template <class Function>
void map(const char* operation, const Tensor& x, Tensor& y, Function f) {
  kernels::check_alike(operation, x, y);
  visit_floating(x.dtype(), operation, [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = static_cast<T>(f(wider_t<T>(in[i])));
  });
}

/// dx = f(saved, dy)
template <class Function>
void map(const char* operation, const Tensor& saved, const Tensor& dy, Tensor& dx, Function f) {
  kernels::check_alike(operation, saved, dy);
  kernels::check_alike(operation, saved, dx);
  visit_floating(saved.dtype(), operation, [&]<class T>(T) {
    const T *first = saved.data<T>(), *second = dy.data<T>();
    T* out = dx.data<T>();
    for (int64_t i = 0; i < dx.numel(); ++i) out[i] = static_cast<T>(f(wider_t<T>(first[i]), wider_t<T>(second[i])));
  });
}

/// y = f(a, b), both broadcast to the shape of y.
template <class Function>
void combine(const char* operation, const Tensor& a, const Tensor& b, Tensor& y, Function f) {
  check(y.shape() == broadcast(a.shape(), b.shape(), operation), operation, ": output of shape ", y.shape(), " for ",
        a.shape(), " and ", b.shape());
  check(a.dtype() == b.dtype() && a.dtype() == y.dtype(), operation, ": elements are ", a.dtype(), " and ", b.dtype(),
        ", expected one dtype");
  const auto in_a = Position::broadcast(a, y.shape()), in_b = Position::broadcast(b, y.shape());
  const Position in_y(y);
  visit_floating(y.dtype(), operation, [&]<class T>(T) {
    const T *first = a.data<T>(), *second = b.data<T>();
    T* out = y.data<T>();
    for (int64_t i = 0; i < y.numel(); ++i)
      out[in_y(i)] = static_cast<T>(f(wider_t<T>(first[in_a(i)]), wider_t<T>(second[in_b(i)])));
  });
}

void relu(const Tensor& x, Tensor& y) {
  map("relu", x, y, [](auto v) { return v < 0 ? decltype(v)(0) : v; });
}

void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("relu_backward", y, dy, dx, [](auto out, auto d) { return out <= 0 ? decltype(d)(0) : d; });
}

void leaky_relu(const Tensor& x, double slope, Tensor& y) {
  map("leaky_relu", x, y, [slope](auto v) { return v > 0 ? v : static_cast<decltype(v)>(slope) * v; });
}

void leaky_relu_backward(const Tensor& x, const Tensor& dy, double slope, Tensor& dx) {
  map("leaky_relu_backward", x, dy, dx,
      [slope](auto v, auto d) { return v > 0 ? d : static_cast<decltype(d)>(slope) * d; });
}

void sigmoid(const Tensor& x, Tensor& y) {
  map("sigmoid", x, y, [](auto v) { return 1 / (1 + std::exp(-v)); });
}

void sigmoid_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("sigmoid_backward", y, dy, dx, [](auto out, auto d) { return d * out * (1 - out); });
}

void tanh(const Tensor& x, Tensor& y) {
  map("tanh", x, y, [](auto v) { return std::tanh(v); });
}

void tanh_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("tanh_backward", y, dy, dx, [](auto out, auto d) { return d * (1 - out * out); });
}

/// The tanh of gelu's approximation.
template <class T>
T gelu_tanh(T v) {
  return std::tanh(static_cast<T>(kernels::kGeluScale) * (v + static_cast<T>(kernels::kGeluCube) * v * v * v));
}

void gelu(const Tensor& x, kernels::GeluForm form, Tensor& y) {
  map("gelu", x, y, [form](auto v) {
    using T = decltype(v);
    return v / 2 * (1 + (form == kernels::GeluForm::exact ? std::erf(v / std::numbers::sqrt2_v<T>) : gelu_tanh(v)));
  });
}

void gelu_backward(const Tensor& x, const Tensor& dy, kernels::GeluForm form, Tensor& dx) {
  map("gelu_backward", x, dy, dx, [form](auto v, auto d) {
    using T = decltype(v);
    if (form == kernels::GeluForm::exact) {
      const T density = std::exp(-v * v / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
      return d * ((1 + std::erf(v / std::numbers::sqrt2_v<T>)) / 2 + v * density);
    }
    const T t = gelu_tanh(v);
    const T inner = static_cast<T>(kernels::kGeluScale) * (1 + 3 * static_cast<T>(kernels::kGeluCube) * v * v);
    return d * ((1 + t) / 2 + v / 2 * (1 - t * t) * inner);
  });
}

void silu(const Tensor& x, Tensor& y) {
  map("silu", x, y, [](auto v) { return v / (1 + std::exp(-v)); });
}

void silu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  map("silu_backward", x, dy, dx, [](auto v, auto d) {
    const auto gate = 1 / (1 + std::exp(-v));
    return d * gate * (1 + v * (1 - gate));
  });
}

void exp(const Tensor& x, Tensor& y) {
  map("exp", x, y, [](auto v) { return std::exp(v); });
}

void log(const Tensor& x, Tensor& y) {
  map("log", x, y, [](auto v) { return std::log(v); });
}

void sqrt(const Tensor& x, Tensor& y) {
  map("sqrt", x, y, [](auto v) { return std::sqrt(v); });
}

void abs(const Tensor& x, Tensor& y) {
  map("abs", x, y, [](auto v) { return std::abs(v); });
}

void abs_backward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  map("abs_backward", x, dy, dx, [](auto v, auto d) { return v > 0 ? d : v < 0 ? -d : decltype(d)(0); });
}

void pow(const Tensor& x, double exponent, Tensor& y) {
  map("pow", x, y, [exponent](auto v) { return std::pow(v, static_cast<decltype(v)>(exponent)); });
}

void pow_backward(const Tensor& x, const Tensor& dy, double exponent, Tensor& dx) {
  map("pow_backward", x, dy, dx, [exponent](auto v, auto d) {
    const auto power = static_cast<decltype(v)>(exponent);
    return power == 0 ? decltype(d)(0) : d * power * std::pow(v, power - 1);
  });
}

void clamp(const Tensor& x, kernels::Limits limits, Tensor& y) {
  map("clamp", x, y, [limits](auto v) {
    using T = decltype(v);
    const T low = static_cast<T>(limits.low), high = static_cast<T>(limits.high), raised = v < low ? low : v;
    return raised > high ? high : raised;
  });
}

void clamp_backward(const Tensor& x, const Tensor& dy, kernels::Limits limits, Tensor& dx) {
  map("clamp_backward", x, dy, dx, [limits](auto v, auto d) {
    using T = decltype(v);
    return v >= static_cast<T>(limits.low) && v <= static_cast<T>(limits.high) ? d : T(0);
  });
}

void scale(const Tensor& x, double scale, Tensor& y) {
  map("scale", x, y, [scale](auto v) { return static_cast<decltype(v)>(scale) * v; });
}

void accumulate(const Tensor& x, Tensor& y) {
  check(x.shape() == y.shape(), "accumulate: shapes ", x.shape(), " and ", y.shape(), ", expected the same");
  combine("accumulate", y, x, y, [](auto sum, auto v) { return sum + v; });
}

void accumulate_nonzero(const Tensor& x, Tensor& sum, Tensor& count) {
  kernels::check_accumulate_nonzero(x, sum, count);
  for (int64_t i = 0; i < x.numel(); ++i) {
    sum.data<float>()[i] += x.data<float>()[i];
    if (x.data<float>()[i] != 0) count.data<float>()[i] += 1;
  }
}

void add(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("add", a, b, y, [](auto p, auto q) { return p + q; });
}

void subtract(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("subtract", a, b, y, [](auto p, auto q) { return p - q; });
}

void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("multiply", a, b, y, [](auto p, auto q) { return p * q; });
}

void divide(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("divide", a, b, y, [](auto p, auto q) { return p / q; });
}

void maximum(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("maximum", a, b, y, [](auto p, auto q) { return p > q || p != p ? p : q; });
}

void minimum(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("minimum", a, b, y, [](auto p, auto q) { return p < q || p != p ? p : q; });
}

void equal(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("equal", a, b, y, [](auto p, auto q) { return p == q ? 1 : 0; });
}

/// y = f(a, b, c), all broadcast to the shape of y. `C` is the element type of c, or void if it is that of y.
template <class C, class Function>
void combine(const char* operation, const Tensor& a, const Tensor& b, const Tensor& c, Tensor& y, Function f) {
  check(a.dtype() == b.dtype() && a.dtype() == y.dtype(), operation, ": elements are ", a.dtype(), " and ", b.dtype(),
        ", expected one dtype");
  const auto in_a = Position::broadcast(a, y.shape()), in_b = Position::broadcast(b, y.shape()),
             in_c = Position::broadcast(c, y.shape());
  const Position in_y(y);
  visit_floating(y.dtype(), operation, [&]<class T>(T) {
    using Third = std::conditional_t<std::is_void_v<C>, T, C>;
    const T *first = a.data<T>(), *second = b.data<T>();
    const Third* third = c.data<Third>();
    T* out = y.data<T>();
    for (int64_t i = 0; i < y.numel(); ++i)
      out[in_y(i)] =
          static_cast<T>(f(wider_t<T>(first[in_a(i)]), wider_t<T>(second[in_b(i)]), wider_t<Third>(third[in_c(i)])));
  });
}

void greater_share(const Tensor& a, const Tensor& b, const Tensor& dy, Tensor& y) {
  combine<void>("greater_share", a, b, dy, y, [](auto p, auto q, auto d) {
    return p == q ? d / 2 : p < q ? decltype(d)(0) : d;
  });
}

void select(const Tensor& a, const Tensor& b, const Tensor& mask, Tensor& y) {
  combine<uint8_t>("select", a, b, mask, y, [](auto p, auto q, auto chosen) { return chosen ? p : q; });
}

}  // namespace

void provide_elementwise() {
  kernels::relu.provide(Target::reference, relu);
  kernels::relu_backward.provide(Target::reference, relu_backward);
  kernels::leaky_relu.provide(Target::reference, leaky_relu);
  kernels::leaky_relu_backward.provide(Target::reference, leaky_relu_backward);
  kernels::sigmoid.provide(Target::reference, sigmoid);
  kernels::sigmoid_backward.provide(Target::reference, sigmoid_backward);
  kernels::tanh.provide(Target::reference, tanh);
  kernels::tanh_backward.provide(Target::reference, tanh_backward);
  kernels::gelu.provide(Target::reference, gelu);
  kernels::gelu_backward.provide(Target::reference, gelu_backward);
  kernels::scale.provide(Target::reference, scale);
  kernels::accumulate.provide(Target::reference, accumulate);
  kernels::accumulate_nonzero.provide(Target::reference, accumulate_nonzero);
  kernels::add.provide(Target::reference, add);
  kernels::subtract.provide(Target::reference, subtract);
  kernels::multiply.provide(Target::reference, multiply);
  kernels::divide.provide(Target::reference, divide);
  kernels::silu.provide(Target::reference, silu);
  kernels::silu_backward.provide(Target::reference, silu_backward);
  kernels::exp.provide(Target::reference, exp);
  kernels::log.provide(Target::reference, log);
  kernels::sqrt.provide(Target::reference, sqrt);
  kernels::abs.provide(Target::reference, abs);
  kernels::abs_backward.provide(Target::reference, abs_backward);
  kernels::pow.provide(Target::reference, pow);
  kernels::pow_backward.provide(Target::reference, pow_backward);
  kernels::clamp.provide(Target::reference, clamp);
  kernels::clamp_backward.provide(Target::reference, clamp_backward);
  kernels::maximum.provide(Target::reference, maximum);
  kernels::minimum.provide(Target::reference, minimum);
  kernels::equal.provide(Target::reference, equal);
  kernels::greater_share.provide(Target::reference, greater_share);
  kernels::select.provide(Target::reference, select);
}

}  // namespace tern::reference
