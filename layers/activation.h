#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// max(x, 0)
class Relu final : public Layer {
 public:
  struct Options {};
  explicit Relu(const Options& = {}) {}
  Variable forward(const Variable& x) override { return relu(x); }
};

/// x if x > 0, else slope·x
class LeakyRelu final : public Layer {
 public:
  struct Options {
    double slope = 0.01;
  };
  explicit LeakyRelu(const Options& options) : slope_(options.slope) {}
  Variable forward(const Variable& x) override { return leaky_relu(x, slope_); }

 private:
  double slope_;
};

/// 1 / (1 + exp(-x))
class Sigmoid final : public Layer {
 public:
  struct Options {};
  explicit Sigmoid(const Options& = {}) {}
  Variable forward(const Variable& x) override { return sigmoid(x); }
};

/// tanh(x)
class Tanh final : public Layer {
 public:
  struct Options {};
  explicit Tanh(const Options& = {}) {}
  Variable forward(const Variable& x) override { return tanh(x); }
};

/// x · sigmoid(x)
class Silu final : public Layer {
 public:
  struct Options {};
  explicit Silu(const Options& = {}) {}
  Variable forward(const Variable& x) override { return silu(x); }
};

/// x · Φ(x). Φ is the distribution function of N(0, 1).
class Gelu final : public Layer {
 public:
  struct Options {
    GeluForm form = GeluForm::exact;
  };
  explicit Gelu(const Options& options) : form_(options.form) {}
  Variable forward(const Variable& x) override { return gelu(x, form_); }

 private:
  GeluForm form_;
};

}  // namespace tern
