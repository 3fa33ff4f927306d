#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

class Node;

/// A gradient [rows of the value, features] that is zero in all rows but a few.
struct RowGradient {
  Tensor rows = {};    ///< i64 [k], ascending, no row twice
  Tensor values = {};  ///< [k, features], in the dtype of the value

  bool defined() const { return rows.defined(); }
  /// All rows of a gradient of this shape.
  Tensor dense(const Shape& shape) const;
};
/// The sum, row by row. A row of both is a's plus b's.
RowGradient operator+(const RowGradient& a, const RowGradient& b);

/// Takes rows [first, first + k) of a gradient, in the order of the rows. `values` [k, features] is good during the
/// call.
using TakeRows = std::function<void(int64_t first, const Tensor& values)>;

/// The place at which the contributions to the gradient of one value are added. The Variables of that value and the
/// nodes that take it as input share it. It does not hold the value, so nodes keep alive only what they saved.
struct GradientSlot {
  GradientSlot() = default;
  ~GradientSlot();  ///< not recursive: frees a graph of any depth with a constant stack

  /// Adds a contribution by rows, for the operation whose `backward` returns no gradient for this leaf.
  void give_rows(const RowGradient& contribution);
  /// Whether the running operation may give its contribution to `take_rows`: it is the only one.
  bool takes_rows() const { return take_rows && pending == 1 && is_empty(); }
  /// Whether no operation has given a contribution.
  bool is_empty() const { return !gradient.defined() && !rows.defined() && !narrow.defined(); }
  /// The same as `give_rows`, for `take_rows`. Call it once, with the last rows.
  void gave_all_rows() { given = true; }
  /// `gradient`, after it took the place of `rows` or `narrow`.
  const Tensor& whole_gradient(const Shape& shape);

  Tensor gradient;                          ///< undefined until the first contribution
  RowGradient rows;                         ///< leaves: stands for `gradient` if all contributions came by rows
  Tensor narrow;                            ///< leaves in f32: stands for `gradient` if its only contribution is bf16
  TakeRows take_rows;                       ///< leaves: if set, operations may give it a gradient instead
  std::shared_ptr<Node> producer;           ///< null for a leaf
  size_t output = 0;                        ///< which of the producer's outputs this is
  std::function<void()> on_gradient_ready;  ///< leaves: called in `backward` after the last contribution
  int pending = 0;                          ///< contributions still to come in the running `backward`
  bool consumed = false;                    ///< `backward` has run and freed the producer
  bool given = false;                       ///< the running operation has given its contribution by rows
};

/// A value on the tape: a tensor and, if a gradient is needed, the slot for it. A cheap handle: copies share both. One
/// thread at a time uses a graph.
class Variable {
 public:
  Variable() = default;
  /// A constant: no gradient flows into it.
  Variable(Tensor value) : value_(std::move(value)) {}
  Variable(Tensor value, std::shared_ptr<GradientSlot> slot) : value_(std::move(value)), slot_(std::move(slot)) {}
  /// A leaf whose gradient `backward` fills.
  static Variable leaf(Tensor value);

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  bool requires_gradient() const { return slot_ != nullptr; }
  /// Undefined if `backward` has not reached this leaf. Gradients of other values are freed as soon as they are used.
  const Tensor& gradient() const;
  const std::shared_ptr<GradientSlot>& slot() const { return slot_; }

  /// Adds d(this)/d(leaf) to the gradient of every leaf below. This value has one element. Frees the graph. If an
  /// operation throws, some leaves have their gradients and others do not.
  void backward() const;
  /// The same, from a given gradient of this value, in its shape and dtype.
  void backward(Tensor gradient) const;

 private:
  Tensor value_;
  std::shared_ptr<GradientSlot> slot_;
};

/// While one lives, operations of this thread record nothing. For evaluation.
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool previous_;
};
bool gradient_enabled();

}  // namespace tern
