#pragma once

#include <string>
#include <vector>

#include "tern/autograd/parameter.h"

namespace tern {

/// A model of two parameters, a [1, 4] and b [2]. Their values and gradients are multiples of 1/8.
/// tests/golden/make_optim.py has the same.
class TwoParameters {
 public:
  explicit TwoParameters(DType dtype = DType::f64) : dtype_(dtype) {
    a.set_value(tensor({1, 4}, 0, [](int64_t i) { return static_cast<double>(i) * 0.25 - 1; }));
    b.set_value(tensor({2}, 4, [](int64_t i) { return static_cast<double>(i) * 0.25 - 1; }));
  }

  void set_gradients(int64_t t) {
    const auto gradient = [=](int64_t i) { return static_cast<double>((7 * i + 3 * t) % 5 - 2) * 0.125; };
    a.set_gradient(tensor({1, 4}, 0, gradient));
    b.set_gradient(tensor({2}, 4, gradient));
  }

  std::vector<NamedParameter> parameters() { return {{"a", &a}, {"b", &b}}; }

  /// The elements of a, then those of b.
  std::vector<double> values() const {
    auto all = a.value().to_vector<double>();
    for (double value : b.value().to_vector<double>()) all.push_back(value);
    return all;
  }

  Parameter a, b;

 private:
  template <class Function>
  Tensor tensor(const Shape& shape, int64_t first, const Function& value) const {
    std::vector<double> values;
    for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(value(first + i));
    return Tensor::from<double>(shape, values).to(dtype_);
  }

  DType dtype_;
};

}  // namespace tern
