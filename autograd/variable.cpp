#include "tern/autograd/variable.h"

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/core/error.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

thread_local bool recording = true;

/// The slots that one `backward` reaches from `root`. Each slot knows how many contributions it will get, and each node
/// how many of its outputs. The destructor clears the counts. If an operation threw, it also drops the gradients that
/// were on their way; those of leaves stay as far as they had come.
class Reached {
 public:
  explicit Reached(std::shared_ptr<GradientSlot> root) : slots_{std::move(root)} {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const auto producer = slots_[i]->producer;
      if (!producer || producer->awaited++ != 0) continue;
      for (const auto& input : producer->inputs())
        if (input.slot && input.slot->pending++ == 0) slots_.push_back(input.slot);
    }
  }
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;
  ~Reached() {
    for (const auto& slot : slots_) {
      slot->pending = 0;
      slot->given = false;
      if (!slot->producer) continue;
      // Left over if an operation threw. The next backward must not add to it.
      slot->gradient = {};
      slot->producer->awaited = 0;
      if (!slot->producer->done) slot->producer->forget();
    }
  }

  void check_not_consumed() const {
    for (const auto& slot : slots_)
      check(!slot->consumed && !(slot->producer && slot->producer->done),
            "backward: the graph was freed by an earlier backward; run the forward again");
  }

 private:
  std::vector<std::shared_ptr<GradientSlot>> slots_;
};

/// Adds a gradient of a value of this dtype.
void add_contribution(GradientSlot& slot, Tensor contribution, DType dtype) {
  if (contribution.dtype() != dtype) {
    if (!slot.producer && slot.is_empty()) {
      slot.narrow = std::move(contribution);
      return;
    }
    contribution = widened(contribution);
  }
  if (slot.whole_gradient(contribution.shape()); !slot.gradient.defined()) {
    slot.gradient = std::move(contribution);
    return;
  }
  // An operation may return one tensor for several inputs. So this writes only to a tensor that nobody else holds.
  if (slot.gradient.is_shared()) slot.gradient = slot.gradient.clone();
  kernels::accumulate(contribution, slot.gradient);
}

}  // namespace

GradientSlot::~GradientSlot() {
  // Slots own nodes, and nodes own slots, down the graph. A dying slot gives its producer to the outermost dying slot.
  thread_local std::vector<std::shared_ptr<Node>>* graveyard = nullptr;
  if (!producer) return;
  if (graveyard) {
    graveyard->push_back(std::move(producer));
    return;
  }
  std::vector<std::shared_ptr<Node>> dying;
  graveyard = &dying;
  dying.push_back(std::move(producer));
  while (!dying.empty()) {
    const auto node = std::move(dying.back());
    dying.pop_back();
  }
  graveyard = nullptr;
}

Variable Variable::leaf(Tensor value) { return {std::move(value), std::make_shared<GradientSlot>()}; }

const Tensor& Variable::gradient() const {
  check(slot_ != nullptr, "gradient: this value is a constant, expected one that requires a gradient");
  return slot_->whole_gradient(value_.shape());
}

void Variable::backward() const {
  check(value_.numel() == 1, "backward: value of shape ", value_.shape(), ", expected one element; pass a gradient");
  backward(filled(value_.shape(), 1, value_.options()));
}

void Variable::backward(Tensor gradient) const {
  check(slot_ != nullptr, "backward: nothing below this value requires a gradient");
  check(gradient.shape() == value_.shape(), "backward: gradient of shape ", gradient.shape(), " for a value of shape ",
        value_.shape());
  check(gradient.dtype() == value_.dtype(), "backward: gradient of ", gradient.dtype(), " for a value of ",
        value_.dtype());
  NoGradient guard;
  const Reached reached(slot_);
  reached.check_not_consumed();
  add_contribution(*slot_, std::move(gradient), value_.dtype());
  std::vector<std::shared_ptr<GradientSlot>> ready{slot_};
  while (!ready.empty()) {
    const auto slot = std::move(ready.back());
    ready.pop_back();
    if (!slot->producer) {
      // Exchanges write into the gradients of leaves, so each is a tensor of its own.
      if (slot->gradient.is_shared()) slot->gradient = slot->gradient.clone();
      if (slot->on_gradient_ready) slot->on_gradient_ready();
      continue;
    }
    slot->consumed = true;
    slot->producer->take(slot->output, std::exchange(slot->gradient, {}));
    if (--slot->producer->awaited != 0) continue;
    const auto node = std::move(slot->producer);
    Gradients gradients = node->backward();
    const auto& inputs = node->inputs();
    check(gradients.size() == inputs.size(), "backward: an operation returned ", gradients.size(), " gradients for ",
          inputs.size(), " inputs");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [slot_of_input, shape, dtype] = inputs[i];
      if (!slot_of_input) continue;
      const Tensor& found = gradients[i];
      const bool given = std::exchange(slot_of_input->given, false);
      check(given || found.defined(), "backward: an operation returned no gradient for input ", i, ", which needs one");
      const bool fits = found.shape() == shape && (found.dtype() == dtype || parameter_dtype(found.dtype()) == dtype);
      check(given || fits, "backward: an operation returned a gradient of ", found.dtype(), " ", found.shape(),
            " for input ", i, ", which is ", dtype, " ", shape);
      if (!given) add_contribution(*slot_of_input, std::move(gradients[i]), dtype);
      if (--slot_of_input->pending == 0) ready.push_back(slot_of_input);
    }
  }
}

void Saved::fail_changed() const {
  throw detail::ChangedTensor(join({"a tensor of ", tensor_.dtype(), " ", tensor_.shape(),
                                    ", which forward saved, was written to before backward"}));
}

void Node::take(size_t output, Tensor dy) { arrived_[output] = in_format(std::move(dy), formats_[output]); }

Tensor Node::take_sum(size_t input) const {
  const auto& slot = inputs_[input].slot;
  const bool takes = slot && slot->producer && slot->gradient.defined() && !slot->gradient.is_shared();
  return takes ? std::exchange(slot->gradient, {}) : Tensor();
}

Gradients Node::backward() {
  done = true;
  return run(std::exchange(arrived_, {}));
}

std::string detail::short_type_name(std::string_view signature) {
  // GCC and clang end the signature with "[with Operation = NAME; ...]" or "[Operation = NAME]".
  const size_t equals = signature.find("Operation = ");
  if (equals == std::string_view::npos) return "backward";
  std::string_view name = signature.substr(equals + 12);
  name = name.substr(0, name.find_first_of(";]"));
  name = name.substr(0, name.find('<'));
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name = name.substr(scope + 2);
  constexpr std::string_view kSuffix = "Operation";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  return std::string(name);
}

Needs Node::needs() const {
  Needs needs{0};
  for (size_t i = 0; i < inputs_.size(); ++i) needs.bits |= uint64_t{inputs_[i].slot != nullptr} << i;
  return needs;
}

NoGradient::NoGradient() : previous_(std::exchange(recording, false)) {}
NoGradient::~NoGradient() { recording = previous_; }
bool gradient_enabled() { return recording; }

}  // namespace tern
