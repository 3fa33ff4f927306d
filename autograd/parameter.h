#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tern/autograd/variable.h"

namespace tern {

/// A tensor that training changes. Its module owns it, at a fixed address. Optimizers and exchanges refer to it.
class Parameter {
 public:
  Parameter() : slot_(std::make_shared<GradientSlot>()) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const Tensor& value() const { return value_; }
  /// Replaces the tensor, by one of another shape if a subnet is narrower. Drops the gradient.
  void set_value(Tensor value) {
    value_ = std::move(value);
    zero_gradient();
  }
  /// Undefined before the first `backward` after `zero_gradient`.
  const Tensor& gradient() const { return slot_->gradient; }
  void set_gradient(Tensor gradient) { slot_->gradient = std::move(gradient); }
  void zero_gradient() { slot_->gradient = {}; }

  /// Training does not change a frozen parameter: it gets no gradient.
  void freeze() {
    frozen_ = true;
    zero_gradient();
  }
  bool frozen() const { return frozen_; }

  /// This parameter as an input of operations; a constant if it is frozen.
  Variable variable() const { return frozen_ ? Variable(value_) : Variable(value_, slot_); }
  /// `hook` runs inside `backward` as soon as this gradient is complete, so that communication overlaps the rest.
  void on_gradient_ready(std::function<void()> hook) { slot_->on_gradient_ready = std::move(hook); }

 private:
  Tensor value_;
  std::shared_ptr<GradientSlot> slot_;
  bool frozen_ = false;
};

/// The variable of a parameter that a module may lack; undefined if it is null.
inline Variable variable_of(const Parameter* parameter) { return parameter ? parameter->variable() : Variable(); }

/// A parameter and its path from the root module: "layer1.0.conv1.weight".
struct NamedParameter {
  std::string name;
  Parameter* parameter;
};

}  // namespace tern
