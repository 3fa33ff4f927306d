#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

class Node;

/// The place at which the contributions to the gradient of one value are added. The Variables of that value and the
/// nodes that take it as input share it. It does not hold the value, so nodes keep alive only what they saved.
struct GradientSlot {
  GradientSlot() = default;
  ~GradientSlot();  ///< not recursive: frees a graph of any depth with a constant stack

  Tensor gradient;                          ///< undefined until the first contribution
  std::shared_ptr<Node> producer;           ///< null for a leaf
  size_t output = 0;                        ///< which of the producer's outputs this is
  std::function<void()> on_gradient_ready;  ///< leaves: called in `backward` after the last contribution
  int pending = 0;                          ///< contributions still to come in the running `backward`
  bool consumed = false;                    ///< `backward` has run and freed the producer
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
