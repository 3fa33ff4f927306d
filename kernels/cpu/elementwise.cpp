#include "tern/kernels/cpu/elementwise.h"

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"

namespace tern::cpu {

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
  // Near 0 the quotient cancels, so an odd polynomial stands there.
  map("tanh", x, y, [](float v) {
    const float square = v * v;
    const float small = v + v * square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315)));
    const float large = 1.0f - 2.0f / (exponential(2.0f * v) + 1.0f);
    return square < 0.01f ? small : large;
  });
}

void tanh_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  map("tanh_backward", y, dy, dx, [](float v, float d) { return d * (1.0f - v * v); });
}

void scale(const Tensor& x, double scale, Tensor& y) {
  map("scale", x, y, [s = static_cast<float>(scale)](float v) { return s * v; });
}

void accumulate(const Tensor& x, Tensor& y) {
  map("accumulate", y, x, y, [](float sum, float v) { return sum + v; });
}

}  // namespace tern::cpu
