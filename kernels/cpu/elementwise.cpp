#include "tern/kernels/elementwise.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/loop_nest.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

void relu(const Tensor& x, Tensor& y) {
  map("relu", x, y, [](float v) { return v < 0 ? 0.0f : v; });
}

void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("relu_backward", y, dy, dx, [](float v, float d) { return v <= 0 ? 0.0f : d; });
}

void leaky_relu(const Tensor& x, double slope, Tensor& y) {
  map("leaky_relu", x, y, [s = static_cast<float>(slope)](float v) { return v > 0 ? v : s * v; });
}

void leaky_relu_backward(const Tensor& x, const Tensor& dy, double slope, Tensor& dx) {
  map("leaky_relu_backward", x, dy, dx,
      [s = static_cast<float>(slope)](float v, float d) { return v > 0 ? d : s * d; });
}

void sigmoid(const Tensor& x, Tensor& y) {
  map("sigmoid", x, y, [](float v) { return 1.0f / (1.0f + exponential(-v)); });
}

void sigmoid_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("sigmoid_backward", y, dy, dx, [](float v, float d) { return d * v * (1.0f - v); });
}

void tanh(const Tensor& x, Tensor& y) {
  // Near 0 the quotient loses precision by cancellation, so an odd polynomial is used instead. The sign comes last:
  // for negative v the quotient would lose a bit of 1 + y, and the polynomial would map -0 to 0.
  map("tanh", x, y, [](float v) {
    const float square = v * v;
    const float small = v + v * square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315)));
    const float large = 1.0f - 2.0f / (exponential(2.0f * std::abs(v)) + 1.0f);
    return std::copysign(square < 0.01f ? small : large, v);
  });
}

void tanh_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("tanh_backward", y, dy, dx, [](float v, float d) { return d * (1.0f - v * v); });
}

/// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), with u the polynomial of gelu's approximation.
float gelu_gate(float v) {
  constexpr auto kScale = static_cast<float>(-2 * kernels::kGeluScale), kCube = static_cast<float>(kernels::kGeluCube);
  return 1.0f / (1.0f + exponential(kScale * v * (1.0f + kCube * v * v)));
}

void gelu(const Tensor& x, kernels::GeluForm form, Tensor& y) {
  if (form == kernels::GeluForm::exact)
    map("gelu", x, y, [](float v) { return v * normal_distribution(v).below; });
  else
    map("gelu", x, y, [](float v) { return v * gelu_gate(v); });
}

void gelu_backward(const Tensor& x, const Tensor& dy, kernels::GeluForm form, Tensor& dx) {
  if (form == kernels::GeluForm::exact) {
    map("gelu_backward", x, dy, dx, [](float v, float d) {
      const Normal normal = normal_distribution(v);
      return d * (normal.below + v * normal.density);
    });
    return;
  }
  constexpr auto kScale = static_cast<float>(2 * kernels::kGeluScale),
                 kSquare = static_cast<float>(3 * kernels::kGeluCube);
  map("gelu_backward", x, dy, dx, [](float v, float d) {
    const float gate = gelu_gate(v);
    return d * (gate + v * gate * (1.0f - gate) * kScale * (1.0f + kSquare * v * v));
  });
}

void silu(const Tensor& x, Tensor& y) {
  map("silu", x, y, [](float v) { return v / (1.0f + exponential(-v)); });
}

void silu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  map("silu_backward", x, dy, dx, [](float v, float d) {
    const float gate = 1.0f / (1.0f + exponential(-v));
    return d * gate * (1.0f + v * (1.0f - gate));
  });
}

void exp(const Tensor& x, Tensor& y) {
  map("exp", x, y, [](float v) { return exponential(v); });
}

void log(const Tensor& x, Tensor& y) {
  map("log", x, y, [](float v) { return logarithm_of_any(v); });
}

void sqrt(const Tensor& x, Tensor& y) {
  map("sqrt", x, y, [](float v) { return std::sqrt(v); });
}

void abs(const Tensor& x, Tensor& y) {
  map("abs", x, y, [](float v) { return std::abs(v); });
}

void abs_backward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  map("abs_backward", x, dy, dx, [](float v, float d) { return v > 0 ? d : v < 0 ? -d : 0.0f; });
}

/// v^0.5 as the C library has it: +0 for -0, and infinity for -infinity.
float root(float v) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return v == -kInfinity ? kInfinity : std::sqrt(v + 0.0f);
}

/// Calls `body(raise)` with raise(v) = v^exponent. The exponents that are common, and one less for their gradients,
/// vectorise. Others are calls of the C library.
template <class Body>
void with_power(float exponent, Body body) {
  if (exponent == 0) return body([](float) { return 1.0f; });
  if (exponent == 1) return body([](float v) { return v; });
  if (exponent == 2) return body([](float v) { return v * v; });
  if (exponent == 3) return body([](float v) { return v * v * v; });
  if (exponent == 0.5f) return body([](float v) { return root(v); });
  if (exponent == -0.5f) return body([](float v) { return 1.0f / root(v); });
  if (exponent == -1) return body([](float v) { return 1.0f / v; });
  // The inverse comes first, because a square would overflow sooner than the result underflows.
  const auto square = [](float v) { return v * v; };
  const auto cube = [](float v) { return v * v * v; };
  if (exponent == -1.5f) return body([=](float v) { return cube(1.0f / root(v)); });
  if (exponent == -2) return body([=](float v) { return square(1.0f / v); });
  if (exponent == -3) return body([=](float v) { return cube(1.0f / v); });
  body([exponent](float v) { return std::pow(v, exponent); });
}

void pow(const Tensor& x, double exponent, Tensor& y) {
  with_power(static_cast<float>(exponent), [&](auto raise) { map("pow", x, y, raise); });
}

void pow_backward(const Tensor& x, const Tensor& dy, double exponent, Tensor& dx) {
  const auto power = static_cast<float>(exponent);
  if (power == 0) return map("pow_backward", x, dx, [](float) { return 0.0f; });
  with_power(power - 1, [&](auto raise) {
    map("pow_backward", x, dy, dx, [=](float v, float d) { return d * power * raise(v); });
  });
}

void clamp(const Tensor& x, kernels::Limits limits, Tensor& y) {
  const auto low = static_cast<float>(limits.low), high = static_cast<float>(limits.high);
  map("clamp", x, y, [=](float v) {
    const float raised = v < low ? low : v;
    return raised > high ? high : raised;
  });
}

void clamp_backward(const Tensor& x, const Tensor& dy, kernels::Limits limits, Tensor& dx) {
  const auto low = static_cast<float>(limits.low), high = static_cast<float>(limits.high);
  map("clamp_backward", x, dy, dx, [=](float v, float d) { return ((v >= low) & (v <= high)) ? d : 0.0f; });
}

void scale(const Tensor& x, double scale, Tensor& y) {
  map("scale", x, y, [s = static_cast<float>(scale)](float v) { return s * v; });
}

void accumulate(const Tensor& x, Tensor& y) {
  map("accumulate", y, x, y, [](float sum, float v) { return sum + v; });
}

void accumulate_nonzero(const Tensor& x, Tensor& sum, Tensor& count) {
  kernels::check_accumulate_nonzero(x, sum, count);
  const float* const from = x.data<float>();
  float *const to = sum.data<float>(), *const times = count.data<float>();
  parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
    for (int64_t i = first; i < last; ++i) {
      to[i] += from[i];
      times[i] += from[i] != 0 ? 1.0f : 0.0f;
    }
  });
}

/// y = function(a, b) over the shape that both broadcast to, in the storage order of y. The inner run is a vector loop
/// if one operand moves by one element and the other moves by one element or stays.
template <class Function>
void combine(const char* operation, const Tensor& a, const Tensor& b, Tensor& y, Function function) {
  const kernels::LoopNest<3> nest(
      y.shape(), kernels::storage_order(y),
      {kernels::strides_in(a, y.shape()), kernels::strides_in(b, y.shape()), kernels::strides_in(y, y.shape())});
  const int64_t a_step = nest.inner_step(0), b_step = nest.inner_step(1), inner = nest.inner;
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = y.data<T>();
    const auto run = [=](const T* p, const T* q, T* r, int64_t count) {
      if (a_step == 1 && b_step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i), load(q + i)));
      } else if (a_step == 1 && b_step == 0) {
        const float value = load(q);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i), value));
      } else if (a_step == 0 && b_step == 1) {
        const float value = load(p);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(value, load(q + i)));
      } else {
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i * a_step), load(q + i * b_step)));
      }
    };
    if (nest.outer == 1) {
      parallel_vectorized(inner, kGrain, [=](int64_t first, int64_t last) {
        run(left + first * a_step, right + first * b_step, out + first, last - first);
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner));
    parallel_vectorized(nest.outer, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto at = nest.offsets(i);
        run(left + at[0], right + at[1], out + i * inner, inner);
      }
    });
  });
}

void add(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("add", a, b, y, [](float p, float q) { return p + q; });
}
void subtract(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("subtract", a, b, y, [](float p, float q) { return p - q; });
}
void multiply(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("multiply", a, b, y, [](float p, float q) { return p * q; });
}
void divide(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("divide", a, b, y, [](float p, float q) { return p / q; });
}

void maximum(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("maximum", a, b, y, [](float p, float q) { return ((p > q) | (p != p)) ? p : q; });
}
void minimum(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("minimum", a, b, y, [](float p, float q) { return ((p < q) | (p != p)) ? p : q; });
}
void equal(const Tensor& a, const Tensor& b, Tensor& y) {
  combine("equal", a, b, y, [](float p, float q) { return p == q ? 1.0f : 0.0f; });
}

/// y = function(a, b, c) over the shape that all broadcast to, in the storage order of y. `C` is the element type of c,
/// or void if it is that of y. The inner run is a vector loop if every operand moves by one element.
template <class C, class Function>
void combine(const char* operation, const Tensor& a, const Tensor& b, const Tensor& c, Tensor& y, Function function) {
  const Shape& shape = y.shape();
  const kernels::LoopNest<4> nest(shape, kernels::storage_order(y),
                                  {kernels::strides_in(a, shape), kernels::strides_in(b, shape),
                                   kernels::strides_in(c, shape), kernels::strides_in(y, shape)});
  const int64_t a_step = nest.inner_step(0), b_step = nest.inner_step(1), c_step = nest.inner_step(2);
  const bool dense = a_step == 1 && b_step == 1 && c_step == 1;
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    using Third = std::conditional_t<std::is_void_v<C>, T, C>;
    const T *left = a.data<T>(), *right = b.data<T>();
    const Third* third = c.data<Third>();
    T* out = y.data<T>();
    const auto run = [=](const T* p, const T* q, const Third* s, T* r, int64_t count) {
      if (dense) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) store(r + i, function(load(p + i), load(q + i), load(s + i)));
      } else {
        for (int64_t i = 0; i < count; ++i)
          store(r + i, function(load(p + i * a_step), load(q + i * b_step), load(s + i * c_step)));
      }
    };
    if (nest.outer == 1) {
      parallel_vectorized(nest.inner, kGrain, [=](int64_t first, int64_t last) {
        run(left + first * a_step, right + first * b_step, third + first * c_step, out + first, last - first);
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, nest.inner));
    parallel_vectorized(nest.outer, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto at = nest.offsets(i);
        run(left + at[0], right + at[1], third + at[2], out + i * nest.inner, nest.inner);
      }
    });
  });
}

void greater_share(const Tensor& a, const Tensor& b, const Tensor& dy, Tensor& y) {
  combine<void>("greater_share", a, b, dy, y, [](float p, float q, float d) {
    return p == q ? 0.5f * d : p < q ? 0.0f : d;
  });
}
void select(const Tensor& a, const Tensor& b, const Tensor& mask, Tensor& y) {
  combine<uint8_t>("select", a, b, mask, y, [](float p, float q, float chosen) { return chosen != 0 ? p : q; });
}

}  // namespace

void provide_elementwise() {
  kernels::relu.provide(Target::cpu, relu);
  kernels::relu_backward.provide(Target::cpu, relu_backward);
  kernels::leaky_relu.provide(Target::cpu, leaky_relu);
  kernels::leaky_relu_backward.provide(Target::cpu, leaky_relu_backward);
  kernels::sigmoid.provide(Target::cpu, sigmoid);
  kernels::sigmoid_backward.provide(Target::cpu, sigmoid_backward);
  kernels::tanh.provide(Target::cpu, tanh);
  kernels::tanh_backward.provide(Target::cpu, tanh_backward);
  kernels::gelu.provide(Target::cpu, gelu);
  kernels::gelu_backward.provide(Target::cpu, gelu_backward);
  kernels::scale.provide(Target::cpu, scale);
  kernels::accumulate.provide(Target::cpu, accumulate);
  kernels::accumulate_nonzero.provide(Target::cpu, accumulate_nonzero);
  kernels::add.provide(Target::cpu, add);
  kernels::subtract.provide(Target::cpu, subtract);
  kernels::multiply.provide(Target::cpu, multiply);
  kernels::divide.provide(Target::cpu, divide);
  kernels::silu.provide(Target::cpu, silu);
  kernels::silu_backward.provide(Target::cpu, silu_backward);
  kernels::exp.provide(Target::cpu, exp);
  kernels::log.provide(Target::cpu, log);
  kernels::sqrt.provide(Target::cpu, sqrt);
  kernels::abs.provide(Target::cpu, abs);
  kernels::abs_backward.provide(Target::cpu, abs_backward);
  kernels::pow.provide(Target::cpu, pow);
  kernels::pow_backward.provide(Target::cpu, pow_backward);
  kernels::clamp.provide(Target::cpu, clamp);
  kernels::clamp_backward.provide(Target::cpu, clamp_backward);
  kernels::maximum.provide(Target::cpu, maximum);
  kernels::minimum.provide(Target::cpu, minimum);
  kernels::equal.provide(Target::cpu, equal);
  kernels::greater_share.provide(Target::cpu, greater_share);
  kernels::select.provide(Target::cpu, select);
}

}  // namespace tern::cpu
