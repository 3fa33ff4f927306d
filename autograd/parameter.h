#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
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
  /// Replaces the tensor, by one of another shape if a subnet is narrower. Drops the gradient. On a GPU, filters are
  /// channels-last, as convolutions read and write them: a row-major tensor of four dimensions is copied.
  void set_value(Tensor value);
  /// Undefined before the first `backward` after `zero_gradient`. A gradient by rows becomes a dense one, and a narrow
  /// one becomes one in the value's dtype.
  const Tensor& gradient() const { return slot_->whole_gradient(value_.shape()); }
  /// The gradient if all operations that use this parameter gave it by rows; undefined otherwise.
  const RowGradient& row_gradient() const { return slot_->rows; }
  /// The gradient in bf16, of a value in f32, if an operation of a GPU wrote it so and nothing has called `gradient`
  /// since; undefined otherwise.
  const Tensor& narrow_gradient() const { return slot_->narrow; }
  void set_gradient(Tensor gradient) {
    slot_->gradient = std::move(gradient);
    slot_->rows = {};
    slot_->narrow = {};
  }
  void zero_gradient() { set_gradient({}); }

  /// Training does not change a frozen parameter: it gets no gradient.
  void freeze() {
    frozen_ = true;
    zero_gradient();
  }
  bool frozen() const { return frozen_; }

  /// This parameter as an input of operations; a constant if it is frozen.
  Variable variable() const { return frozen_ ? Variable(value_) : Variable(value_, slot_); }
  /// The copy of the value in the dtype and format of x, as an operation of a GPU on x reads it. Undefined if it reads
  /// the value itself, or if there is no current copy of this kind. The first call says of which kind the copy is that
  /// `copy_parameters` makes.
  Tensor copy_for(const Tensor& x);
  /// The copy if it is current, otherwise undefined. It stays current if each write of the value also writes the copy
  /// and marks both as written, as updates do. No state holds it.
  Tensor current_copy() const;

  /// `hook` runs inside `backward` as soon as this gradient is complete, so that communication overlaps the rest.
  void on_gradient_ready(std::function<void()> hook) { slot_->on_gradient_ready = std::move(hook); }
  /// From now on, an operation that can give its gradient by blocks of rows (`linear_cross_entropy`) gives it to `take`
  /// inside `backward`, if no other operation uses this parameter. `gradient` then stays undefined, so the whole
  /// gradient is never in memory. `take` may write to the rows of the value that it gets. An empty `take` ends this.
  void on_rows(TakeRows take) { slot_->take_rows = std::move(take); }

 private:
  Tensor value_;
  std::shared_ptr<GradientSlot> slot_;
  bool frozen_ = false;
  std::optional<TensorOptions> copied_as_;  ///< what `copy_for` wanted first
  Tensor copy_;                             ///< keeps its memory, which recorded steps read and write
  /// Version of the value minus that of the copy, when the copy was made. A write of the value alone makes it greater.
  std::optional<uint32_t> lead_;

  friend void copy_parameters(std::span<Parameter* const> parameters);
};

/// Makes the copies that `copy_for` wanted and that are not current, in one launch. Does nothing in `record`, whose
/// work does not run at once.
void copy_parameters(std::span<Parameter* const> parameters);

/// The variable of a parameter that a module may lack; undefined if it is null.
inline Variable variable_of(const Parameter* parameter) { return parameter ? parameter->variable() : Variable(); }

/// A parameter and its path from the root module: "layer1.0.conv1.weight".
struct NamedParameter {
  std::string name;
  Parameter* parameter;
};

}  // namespace tern
