#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/autograd/variable.h"
#include "tern/core/error.h"

namespace tern {

/// Which inputs of an operation need a gradient.
struct Needs {
  static constexpr size_t kMaxInputs = 64;
  uint64_t bits = ~uint64_t{0};
  bool operator[](size_t input) const { return (bits >> input & 1) != 0; }
};

/// Gradients in the order of the inputs (or outputs) that they belong to. Undefined if nobody needs (or gave) one.
using Gradients = std::vector<Tensor>;

/// A tensor that `forward` keeps for `backward`. Reading it throws if somebody has written to its storage since then:
/// the gradient would be wrong. The error names the operation. Tensor::version says which writes are seen.
class Saved {
 public:
  Saved() = default;
  Saved(Tensor tensor) : tensor_(std::move(tensor)), version_(tensor_.version()) {}

  const Tensor& get() const {
    if (tensor_.version() != version_) fail_changed();
    return tensor_;
  }
  operator const Tensor&() const { return get(); }

  // What no write changes.
  const Shape& shape() const { return tensor_.shape(); }
  int rank() const { return tensor_.rank(); }
  int64_t size(int dimension) const { return tensor_.size(dimension); }
  DType dtype() const { return tensor_.dtype(); }
  TensorOptions options() const { return tensor_.options(); }
  /// An uninitialised tensor like this one.
  Tensor empty_like() const { return Tensor::empty_like(tensor_); }

 private:
  [[noreturn]] void fail_changed() const;

  Tensor tensor_;
  uint32_t version_ = 0;
};

/// An input of a recorded operation: where its gradient goes, null if nobody needs one, and its shape and dtype.
struct NodeInput {
  std::shared_ptr<GradientSlot> slot;
  Shape shape;
  DType dtype;
};

/// One recorded operation. It owns what it saved and the slots of its inputs. The slots of its outputs own it.
class Node {
 public:
  Node(std::vector<NodeInput> inputs, std::vector<MemoryFormat> formats)
      : inputs_(std::move(inputs)), formats_(std::move(formats)), arrived_(formats_.size()) {}
  virtual ~Node() = default;
  const std::vector<NodeInput>& inputs() const { return inputs_; }
  Needs needs() const;

  /// Takes the gradient of one output, in its shape and dtype.
  void take(size_t output, Tensor dy);
  /// The gradients of the inputs, from those that were taken. Called once; frees what was saved.
  Gradients backward();
  /// Takes away the gradient that other operations have given for an input so far. Undefined if there is none, if
  /// another tensor shares it, or if the input is a leaf.
  Tensor take_sum(size_t input) const;
  /// Drops the gradients that were taken.
  void forget() { arrived_.assign(formats_.size(), {}); }

  int awaited = 0;    ///< outputs whose gradient is still to come in the running `Variable::backward`
  bool done = false;  ///< `backward` was called

 private:
  /// dys[i] is in the format of output i, or undefined if nobody used that output.
  virtual Gradients run(Gradients dys) = 0;

  std::vector<NodeInput> inputs_;
  std::vector<MemoryFormat> formats_;  ///< of the outputs
  Gradients arrived_;
};

namespace detail {

/// What `Saved` throws. `apply`'s operations turn it into an Error that names them.
class ChangedTensor : public Error {
 public:
  using Error::Error;
};

/// Returns `Gelu` for `tern::(anonymous namespace)::Gelu`, and so on.
std::string short_type_name(std::string_view function_signature);

/// `operation.name()` if the operation has one, or else the name of its type.
template <class Operation>
std::string name_of(const Operation& operation) {
  if constexpr (requires { operation.name(); })
    return operation.name();
  else
    return short_type_name(__PRETTY_FUNCTION__);
}

template <class Operation>
class OperationNode final : public Node {
 public:
  OperationNode(Operation operation, std::vector<NodeInput> inputs, std::vector<MemoryFormat> formats)
      : Node(std::move(inputs), std::move(formats)), operation_(std::move(operation)) {}

 private:
  Gradients run(Gradients dys) override {
    const Operation operation = std::move(operation_);
    try {
      if constexpr (requires { operation.adds_to_first(); })
        return operation.backward(std::move(dys.front()), needs(), operation.adds_to_first() ? take_sum(0) : Tensor());
      else if constexpr (requires { operation.backward(std::move(dys), needs()); })
        return operation.backward(std::move(dys), needs());
      else
        return operation.backward(std::move(dys.front()), needs());
    } catch (const ChangedTensor& changed) {
      fail({name_of(operation), ": ", changed.what()});
    }
  }

  Operation operation_;
};

/// The outputs as Variables. Without a need for a gradient they are constants, and the operation is forgotten.
template <class Operation>
void record(Operation operation, std::span<const Variable> inputs, std::span<Tensor> ys, std::span<Variable> outputs) {
  bool needed = false;
  for (const auto& input : inputs) needed |= input.requires_gradient();
  if (!needed || !gradient_enabled()) {
    for (size_t i = 0; i < ys.size(); ++i) outputs[i] = Variable(std::move(ys[i]));
    return;
  }
  check(inputs.size() <= Needs::kMaxInputs, "gradients of an operation over ", inputs.size(),
        " inputs, expected at most ", Needs::kMaxInputs);
  std::vector<NodeInput> taken;
  taken.reserve(inputs.size());
  for (const auto& input : inputs) taken.push_back({input.slot(), input.value().shape(), input.value().dtype()});
  std::vector<MemoryFormat> formats;
  formats.reserve(ys.size());
  for (const auto& y : ys) formats.push_back(y.format());
  const auto node =
      std::make_shared<OperationNode<Operation>>(std::move(operation), std::move(taken), std::move(formats));
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!is_floating(ys[i].dtype())) {  // such as indices: no gradient flows into them
      outputs[i] = Variable(std::move(ys[i]));
      continue;
    }
    auto slot = std::make_shared<GradientSlot>();
    slot->producer = node;
    slot->output = i;
    outputs[i] = Variable(std::move(ys[i]), std::move(slot));
  }
}

template <class Operation>
concept TakesGradients = requires(const Operation& operation, Gradients dys, const Needs& needs) {
  operation.backward(std::move(dys), needs);
};

/// Every operation needs its first input.
template <class Operation>
void check_first(const Operation& operation, const Variable& first, const auto&...) {
  if (!first.defined()) [[unlikely]]
    fail({name_of(operation), ": the first argument is undefined, expected a tensor"});
}

/// Variables for what `forward` returned: one for a Tensor, an array for an array, a vector for a vector.
template <class Operation>
Variable record_outputs(Operation operation, std::span<const Variable> inputs, Tensor y) {
  Variable output;
  record(std::move(operation), inputs, std::span(&y, 1), std::span(&output, 1));
  return output;
}
template <TakesGradients Operation, size_t kCount>
std::array<Variable, kCount> record_outputs(Operation operation, std::span<const Variable> inputs,
                                            std::array<Tensor, kCount> ys) {
  std::array<Variable, kCount> outputs;
  record(std::move(operation), inputs, std::span<Tensor>(ys), std::span<Variable>(outputs));
  return outputs;
}
template <TakesGradients Operation>
std::vector<Variable> record_outputs(Operation operation, std::span<const Variable> inputs, std::vector<Tensor> ys) {
  std::vector<Variable> outputs(ys.size());
  record(std::move(operation), inputs, std::span<Tensor>(ys), std::span<Variable>(outputs));
  return outputs;
}

}  // namespace detail

// Helpers of operations.

/// The gradient through a relu that gave y, in y's format: 0 if y <= 0, else dy, also if y is NaN. Overwrites dy if
/// nobody else holds it.
Tensor relu_gradient(const Tensor& y, Tensor dy);

/// scale·dy summed to `shape`, which broadcasts to the shape of dy: the gradient of an operand that was broadcast.
Tensor sum_to(const Tensor& dy, const Shape& shape, double scale = 1);

/// x if it has this format, else a copy that has it.
Tensor in_format(Tensor x, MemoryFormat format);
/// x in the dtype of the parameters beside it.
Tensor widened(const Tensor& x);

/// A tensor with this value in every element. A GPU writes it by itself, so a recorded step may contain it.
Tensor filled(const Shape& shape, double value, const TensorOptions& options);

/// The index of `dimension` from the first one on. Throws an error that begins with `operation` if `shape` lacks it.
int place_of(const char* operation, const Shape& shape, int dimension);

/// f(x). If x has rank 3, one image [C, H, W] without its batch: f of the batch, and one image as result.
Variable with_a_batch(const Variable& x, const std::function<Variable(const Variable&)>& f);

/// f(x). If x is a number, of shape [], f of the vector with this element, as a number again: a number has dimension 0,
/// as in PyTorch.
Variable with_a_dimension(const Variable& x, const std::function<Variable(const Variable&)>& f);

/// Runs an operation, and records it if a gradient is needed. An operation is a struct. Its fields are its options and
/// what it saves; saved tensors are `Saved`. It has
///   Tensor forward(const Tensor& x, ...);                            // may write to the fields
///   Gradients backward(const Tensor& dy, const Needs& needs) const;  // one gradient per input
/// Both depend on nothing but their arguments and the fields, so an operation is tested without a tape. dy has the
/// shape, dtype and format of y. A gradient has the shape and dtype of its input, in any format; the gradient of an f32
/// input may be bf16. A backward that takes dy by value may write to it unless it is shared.
///
/// An operation whose `bool adds_to_first() const` is true has `backward(dy, needs, Tensor sum)`. If `sum` is defined,
/// it is what other operations gave for the first input, in any format. The operation adds its own gradient to it and
/// returns the result.
///
/// An operation with several outputs returns them as std::array<Tensor, N> or std::vector<Tensor>, and `apply` returns
/// as many Variables. It has `Gradients backward(const Gradients& dys, const Needs& needs) const`, with one of dys per
/// output; it is undefined if nobody used that output. An input that needs a gradient gets one, of zeros if need be.
/// Errors name the operation by its type, or by `std::string name() const` if it has one.
template <class Operation, class... Inputs>
auto apply(Operation operation, const Inputs&... inputs) {
  detail::check_first(operation, inputs...);
  auto y = operation.forward(inputs.value()...);
  const Variable variables[] = {inputs...};
  return detail::record_outputs(std::move(operation), variables, std::move(y));
}

/// The same for an operation over any number of inputs, at most `Needs::kMaxInputs` if a gradient is needed:
/// `forward(std::span<const Tensor>)`.
template <class Operation>
auto apply_list(Operation operation, std::span<const Variable> inputs) {
  std::vector<Tensor> values;
  values.reserve(inputs.size());
  for (const auto& input : inputs) values.push_back(input.value());
  auto y = operation.forward(std::span<const Tensor>(values));
  return detail::record_outputs(std::move(operation), inputs, std::move(y));
}

}  // namespace tern
