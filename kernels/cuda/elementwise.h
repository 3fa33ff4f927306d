#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

void relu(const Tensor& x, Tensor& y);
void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx);
void leaky_relu(const Tensor& x, double slope, Tensor& y);
void leaky_relu_backward(const Tensor& x, const Tensor& dy, double slope, Tensor& dx);
void sigmoid(const Tensor& x, Tensor& y);
void sigmoid_backward(const Tensor& y, const Tensor& dy, Tensor& dx);
void tanh(const Tensor& x, Tensor& y);
void tanh_backward(const Tensor& y, const Tensor& dy, Tensor& dx);
void scale(const Tensor& x, double scale, Tensor& y);
void accumulate(const Tensor& x, Tensor& y);
void add(const Tensor& a, const Tensor& b, Tensor& y);
void subtract(const Tensor& a, const Tensor& b, Tensor& y);
void multiply(const Tensor& a, const Tensor& b, Tensor& y);
void divide(const Tensor& a, const Tensor& b, Tensor& y);
void broadcast_to(const Tensor& x, double scale, Tensor& y);

}  // namespace tern::cuda
