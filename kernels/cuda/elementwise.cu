#include <cmath>

#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/operands.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0 : x; }  // NaN stays NaN
};
struct ReluBackward {
  __device__ float operator()(float y, float dy) const { return y <= 0 ? 0 : dy; }  // NaN passes dy
};
struct LeakyRelu {
  float slope;
  __device__ float operator()(float x) const { return x > 0 ? x : slope * x; }
};
struct LeakyReluBackward {
  float slope;
  __device__ float operator()(float x, float dy) const { return x > 0 ? dy : slope * dy; }
};
struct Sigmoid {
  __device__ float operator()(float x) const { return 1 / (1 + expf(-x)); }
};
struct SigmoidBackward {
  __device__ float operator()(float y, float dy) const { return dy * y * (1 - y); }
};
struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct TanhBackward {
  __device__ float operator()(float y, float dy) const { return dy * (1 - y * y); }
};
/// erfc and the logistic function have no cancellation far below 0.
template <kernels::GeluForm>
struct Gelu {
  __device__ static float normal_below(float x) { return 0.5f * erfcf(-0.707106781f * x); }
  __device__ float operator()(float x) const { return x * normal_below(x); }
  __device__ float operator()(float x, float dy) const {
    return dy * (normal_below(x) + x * 0.398942280f * expf(-0.5f * x * x));
  }
};
template <>
struct Gelu<kernels::GeluForm::by_tanh> {
  static constexpr auto kScale = static_cast<float>(2 * kernels::kGeluScale),
                        kCube = static_cast<float>(kernels::kGeluCube);
  __device__ static float gate(float x) { return 1 / (1 + expf(-kScale * x * (1 + kCube * x * x))); }
  __device__ float operator()(float x) const { return x * gate(x); }
  __device__ float operator()(float x, float dy) const {
    const float open = gate(x);
    return dy * (open + x * open * (1 - open) * kScale * (1 + 3 * kCube * x * x));
  }
};
struct Silu {
  __device__ float operator()(float x) const { return x / (1 + expf(-x)); }
};
struct SiluBackward {
  __device__ float operator()(float x, float dy) const {
    const float gate = 1 / (1 + expf(-x));
    return dy * gate * (1 + x * (1 - gate));
  }
};
struct Exp {
  __device__ float operator()(float x) const { return expf(x); }
};
struct Log {
  __device__ float operator()(float x) const { return logf(x); }
};
struct Sqrt {
  __device__ float operator()(float x) const { return sqrtf(x); }
};
struct Abs {
  __device__ float operator()(float x) const { return fabsf(x); }
};
struct AbsBackward {
  __device__ float operator()(float x, float dy) const { return x > 0 ? dy : x < 0 ? -dy : 0; }
};
struct Pow {
  float exponent;
  __device__ float operator()(float x) const { return powf(x, exponent); }
};
struct PowBackward {
  float exponent;
  __device__ float operator()(float x, float dy) const {
    return exponent == 0 ? 0 : dy * exponent * powf(x, exponent - 1);
  }
};
struct Clamp {
  float low, high;
  __device__ float operator()(float x) const {
    const float raised = x < low ? low : x;  // NaN stays NaN
    return raised > high ? high : raised;
  }
  __device__ float operator()(float x, float dy) const { return x >= low && x <= high ? dy : 0; }
};
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Subtract {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Divide {
  __device__ float operator()(float a, float b) const { return a / b; }
};

struct Minimum {
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};
struct Equal {
  __device__ float operator()(float a, float b) const { return a == b ? 1 : 0; }
};
struct GreaterShare {
  __device__ float operator()(float a, float b, float dy) const { return a == b ? 0.5f * dy : a < b ? 0 : dy; }
};
struct Select {
  __device__ float operator()(float a, float b, float chosen) const { return chosen != 0 ? a : b; }
};

struct AddBias {
  bool relu;
  __device__ float operator()(float y, float bias) const {
    const float sum = y + bias;
    return relu && sum < 0 ? 0 : sum;
  }
};

void relu(const Tensor& x, Tensor& y) { map("relu", Relu{}, y, x); }
void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) { map("relu_backward", ReluBackward{}, dx, y, dy); }

void leaky_relu(const Tensor& x, double slope, Tensor& y) {
  map("leaky_relu", LeakyRelu{static_cast<float>(slope)}, y, x);
}
void leaky_relu_backward(const Tensor& x, const Tensor& dy, double slope, Tensor& dx) {
  map("leaky_relu_backward", LeakyReluBackward{static_cast<float>(slope)}, dx, x, dy);
}

void sigmoid(const Tensor& x, Tensor& y) { map("sigmoid", Sigmoid{}, y, x); }
void sigmoid_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("sigmoid_backward", SigmoidBackward{}, dx, y, dy);
}
void tanh(const Tensor& x, Tensor& y) { map("tanh", Tanh{}, y, x); }
void tanh_backward(const Tensor& y, const Tensor& dy, Tensor& dx) { map("tanh_backward", TanhBackward{}, dx, y, dy); }

void gelu(const Tensor& x, kernels::GeluForm form, Tensor& y) {
  if (form == kernels::GeluForm::exact)
    map("gelu", Gelu<kernels::GeluForm::exact>{}, y, x);
  else
    map("gelu", Gelu<kernels::GeluForm::by_tanh>{}, y, x);
}
void gelu_backward(const Tensor& x, const Tensor& dy, kernels::GeluForm form, Tensor& dx) {
  if (form == kernels::GeluForm::exact)
    map("gelu_backward", Gelu<kernels::GeluForm::exact>{}, dx, x, dy);
  else
    map("gelu_backward", Gelu<kernels::GeluForm::by_tanh>{}, dx, x, dy);
}

void silu(const Tensor& x, Tensor& y) { map("silu", Silu{}, y, x); }
void silu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) { map("silu_backward", SiluBackward{}, dx, x, dy); }
void exp(const Tensor& x, Tensor& y) { map("exp", Exp{}, y, x); }
void log(const Tensor& x, Tensor& y) { map("log", Log{}, y, x); }
void sqrt(const Tensor& x, Tensor& y) { map("sqrt", Sqrt{}, y, x); }
void abs(const Tensor& x, Tensor& y) { map("abs", Abs{}, y, x); }
void abs_backward(const Tensor& x, const Tensor& dy, Tensor& dx) { map("abs_backward", AbsBackward{}, dx, x, dy); }
void pow(const Tensor& x, double exponent, Tensor& y) { map("pow", Pow{static_cast<float>(exponent)}, y, x); }
void pow_backward(const Tensor& x, const Tensor& dy, double exponent, Tensor& dx) {
  map("pow_backward", PowBackward{static_cast<float>(exponent)}, dx, x, dy);
}
Clamp clamp_to(kernels::Limits limits) { return {static_cast<float>(limits.low), static_cast<float>(limits.high)}; }
void clamp(const Tensor& x, kernels::Limits limits, Tensor& y) { map("clamp", clamp_to(limits), y, x); }
void clamp_backward(const Tensor& x, const Tensor& dy, kernels::Limits limits, Tensor& dx) {
  map("clamp_backward", clamp_to(limits), dx, x, dy);
}

void scale(const Tensor& x, double scale, Tensor& y) { map("scale", Scale{static_cast<float>(scale)}, y, x); }
void accumulate(const Tensor& x, Tensor& y) {
  const Tensor sum = y;
  map("accumulate", Add{}, y, sum, x);
}

__global__ void accumulate_nonzero_kernel(const float* x, int64_t n, float* sum, float* count) {
  for (int64_t i = global_thread(); i < n; i += global_threads()) {
    sum[i] += x[i];
    if (x[i] != 0) count[i] += 1;
  }
}
void accumulate_nonzero(const Tensor& x, Tensor& sum, Tensor& count) {
  kernels::check_accumulate_nonzero(x, sum, count);
  launch("accumulate_nonzero", x.device(), grid_over(x.numel()), accumulate_nonzero_kernel,
         static_cast<const float*>(x.data<float>()), x.numel(), sum.data<float>(), count.data<float>());
}

void add(const Tensor& a, const Tensor& b, Tensor& y) { map("add", Add{}, y, a, b); }
void subtract(const Tensor& a, const Tensor& b, Tensor& y) { map("subtract", Subtract{}, y, a, b); }
void multiply(const Tensor& a, const Tensor& b, Tensor& y) { map("multiply", Multiply{}, y, a, b); }
void divide(const Tensor& a, const Tensor& b, Tensor& y) { map("divide", Divide{}, y, a, b); }
void maximum(const Tensor& a, const Tensor& b, Tensor& y) { map("maximum", Maximum{}, y, a, b); }
void minimum(const Tensor& a, const Tensor& b, Tensor& y) { map("minimum", Minimum{}, y, a, b); }
void equal(const Tensor& a, const Tensor& b, Tensor& y) { map("equal", Equal{}, y, a, b); }
void greater_share(const Tensor& a, const Tensor& b, const Tensor& dy, Tensor& y) {
  map("greater_share", GreaterShare{}, y, a, b, dy);
}

void select(const Tensor& a, const Tensor& b, const Tensor& mask, Tensor& y) {
  if (y.numel() == 0) return;
  const Shape& shape = y.shape();
  const kernels::LoopNest<4> nest(shape, kernels::storage_order(y),
                                  {kernels::strides_in(y, shape), kernels::strides_in(a, shape),
                                   kernels::strides_in(b, shape), kernels::strides_in(mask, shape)});
  const Walk<4> walk(nest, "select");
  visit_fast(y.dtype(), "select", [&]<class T>(T) {
    map_walk("select", y.device(), walk, Select{}, y.data<T>(), static_cast<const T*>(a.data<T>()),
             static_cast<const T*>(b.data<T>()), static_cast<const uint8_t*>(mask.data<uint8_t>()));
  });
}

}  // namespace

void add_bias(const char* operation, const Tensor& bias, bool relu, Tensor& y) {
  if (!bias.defined()) {
    if (relu) kernels::relu.on(Target::cuda)(y, y);
    return;
  }
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    const ChannelMap map(operation, y.shape());
    map.run<T>(AddBias{relu}, y, map.of<T>(y), map.each(bias));
  });
}

void provide_elementwise() {
  kernels::relu.provide(Target::cuda, relu);
  kernels::relu_backward.provide(Target::cuda, relu_backward);
  kernels::leaky_relu.provide(Target::cuda, leaky_relu);
  kernels::leaky_relu_backward.provide(Target::cuda, leaky_relu_backward);
  kernels::sigmoid.provide(Target::cuda, sigmoid);
  kernels::sigmoid_backward.provide(Target::cuda, sigmoid_backward);
  kernels::tanh.provide(Target::cuda, tanh);
  kernels::tanh_backward.provide(Target::cuda, tanh_backward);
  kernels::gelu.provide(Target::cuda, gelu);
  kernels::gelu_backward.provide(Target::cuda, gelu_backward);
  kernels::scale.provide(Target::cuda, scale);
  kernels::accumulate.provide(Target::cuda, accumulate);
  kernels::accumulate_nonzero.provide(Target::cuda, accumulate_nonzero);
  kernels::add.provide(Target::cuda, add);
  kernels::subtract.provide(Target::cuda, subtract);
  kernels::multiply.provide(Target::cuda, multiply);
  kernels::divide.provide(Target::cuda, divide);
  kernels::silu.provide(Target::cuda, silu);
  kernels::silu_backward.provide(Target::cuda, silu_backward);
  kernels::exp.provide(Target::cuda, exp);
  kernels::log.provide(Target::cuda, log);
  kernels::sqrt.provide(Target::cuda, sqrt);
  kernels::abs.provide(Target::cuda, abs);
  kernels::abs_backward.provide(Target::cuda, abs_backward);
  kernels::pow.provide(Target::cuda, pow);
  kernels::pow_backward.provide(Target::cuda, pow_backward);
  kernels::clamp.provide(Target::cuda, clamp);
  kernels::clamp_backward.provide(Target::cuda, clamp_backward);
  kernels::maximum.provide(Target::cuda, maximum);
  kernels::minimum.provide(Target::cuda, minimum);
  kernels::equal.provide(Target::cuda, equal);
  kernels::greater_share.provide(Target::cuda, greater_share);
  kernels::select.provide(Target::cuda, select);
}

}  // namespace tern::cuda
