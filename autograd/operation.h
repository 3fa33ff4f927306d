#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tern/autograd/variable.h"
#include "tern/core/error.h"

namespace tern {

/// Which inputs of an operation want a gradient.
struct Needs {
  static constexpr size_t kMaxInputs = 64;
  uint64_t bits = ~uint64_t{0};
  bool operator[](size_t input) const { return (bits >> input & 1) != 0; }
};

/// One gradient per input, in order; undefined where none is needed.
using Gradients = std::vector<Tensor>;

/// Where the gradient of an operation's input goes (null: nobody wants it), and what it must look like.
struct NodeInput {
  std::shared_ptr<GradientSlot> slot;
  Shape shape;
  DType dtype;
};

/// One recorded operation: owns what it saved and the slots of its inputs, never its output.
class Node {
 public:
  Node(std::vector<NodeInput> inputs, MemoryFormat format) : inputs_(std::move(inputs)), format_(format) {}
  virtual ~Node() = default;
  /// Called once, with a gradient in the output's shape, dtype and format; frees what was saved on return.
  virtual Gradients backward(Tensor dy) = 0;
  const std::vector<NodeInput>& inputs() const { return inputs_; }
  /// The output's.
  MemoryFormat format() const { return format_; }
  Needs needs() const;

 private:
  std::vector<NodeInput> inputs_;
  MemoryFormat format_;
};

namespace detail {

template <class Operation>
class OperationNode final : public Node {
 public:
  OperationNode(Operation operation, std::vector<NodeInput> inputs, MemoryFormat format)
      : Node(std::move(inputs), format), operation_(std::move(operation)) {}
  Gradients backward(Tensor dy) override {
    const Operation operation = std::move(operation_);
    return operation.backward(std::move(dy), needs());
  }

 private:
  Operation operation_;
};

template <class Operation>
Variable record(Operation operation, Tensor y, std::span<const Variable> inputs) {
  std::vector<NodeInput> known;
  known.reserve(inputs.size());
  bool wanted = false;
  for (const auto& input : inputs) {
    const Tensor& x = input.value();
    known.push_back({input.slot(), x.shape(), x.dtype()});
    wanted |= input.requires_gradient();
  }
  if (!wanted || !gradient_enabled()) return Variable(std::move(y));
  check(inputs.size() <= Needs::kMaxInputs, "gradients of an operation over ", inputs.size(),
        " inputs, expected at most ", Needs::kMaxInputs);
  auto slot = std::make_shared<GradientSlot>();
  slot->producer = std::make_shared<OperationNode<Operation>>(std::move(operation), std::move(known), y.format());
  return Variable(std::move(y), std::move(slot));
}

}  // namespace detail

/// Runs an operation and records it where a gradient is wanted. An operation is a struct whose fields are its
/// options and what it saves, with
///   Tensor forward(const Tensor& x, ...);                            // may save into fields
///   Gradients backward(const Tensor& dy, const Needs& needs) const;  // one gradient per input
/// Both are pure but for the fields, so an operation is tested without a tape. dy has y's shape, dtype and format;
/// gradients have their input's shape and dtype, in any format. A backward that takes dy by value may write into it
/// where it is not shared.
template <class Operation, class... Inputs>
Variable apply(Operation operation, const Inputs&... inputs) {
  Tensor y = operation.forward(inputs.value()...);
  const Variable variables[] = {inputs...};
  return detail::record(std::move(operation), std::move(y), variables);
}

/// The same for an operation over any number of inputs, up to `Needs::kMaxInputs` where a gradient is wanted:
/// `Tensor forward(std::span<const Tensor>)`.
template <class Operation>
Variable apply_list(Operation operation, std::span<const Variable> inputs) {
  std::vector<Tensor> values;
  values.reserve(inputs.size());
  for (const auto& input : inputs) values.push_back(input.value());
  Tensor y = operation.forward(std::span<const Tensor>(values));
  return detail::record(std::move(operation), std::move(y), inputs);
}

}  // namespace tern
