#include "tern/optim/optimizer.h"

#include <cmath>
#include <set>
#include <utility>

#include "tern/core/error.h"
#include "tern/kernels/embedding.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/update.h"

namespace tern {

void StepNumber::set(double value, Device device) {
  const bool here = tensor_.defined() && tensor_.device() == device;
  if (here && value_ == value) return;
  if (!here) tensor_ = Tensor::empty({}, {.dtype = DType::f64, .device = device});
  kernels::fill(tensor_, value);
  value_ = value;
}

std::vector<ParameterGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                             std::span<const GroupRule> rules) {
  std::vector<ParameterGroup> groups;
  for (const GroupRule& rule : rules)
    groups.push_back(
        {.parameters = {}, .lr_scale = rule.lr_scale, .weight_decay = rule.weight_decay, .momentum = rule.momentum});
  groups.emplace_back();
  for (const NamedParameter& named : parameters) {
    size_t place = 0;
    while (place < rules.size() && !name_matches(named.name, rules[place].pattern)) ++place;
    groups[place].parameters.push_back(named);
  }
  for (size_t i = 0; i < rules.size(); ++i)
    check_input(!groups[i].parameters.empty(), "group '", rules[i].pattern,
                "' has no parameters: no name matches, or an earlier group has them; the model's last is '",
                parameters.empty() ? "" : parameters.back().name, "'");
  return groups;
}

using kernels::ParameterUpdate;

namespace {

/// A copy of some rows of a matrix; undefined if it is.
Tensor rows_of(const Tensor& matrix, const Tensor& rows) {
  if (!matrix.defined()) return {};
  Tensor copy = Tensor::empty({rows.numel(), matrix.size(1)}, matrix.options());
  kernels::embedding_bag(matrix, {.indices = rows, .offsets = {}, .values = {}}, copy);
  return copy;
}

/// A norm needs the whole gradient.
void check_not_clipped(double max_norm) {
  check_input(max_norm == 0, "optimizer: gradients are clipped at ", max_norm,
              ", expected no clipping if backward updates parameters");
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay,
                     std::vector<std::string> state_names, bool counts_steps)
    : state_names_(std::move(state_names)), counts_steps_(counts_steps) {
  set_learning_rate(lr);
  std::set<std::string> names;
  std::set<const Parameter*> parameters;
  for (auto& group : groups) {
    const double decay = group.weight_decay.value_or(weight_decay);
    check(decay >= 0 && std::isfinite(decay), "optimizer: weight decay ", decay, ", expected 0 or more");
    check(group.lr_scale >= 0 && std::isfinite(group.lr_scale), "optimizer: learning rate scale ", group.lr_scale,
          ", expected 0 or more");
    Group& added = groups_.emplace_back(Group{{}, group.lr_scale, decay, group.momentum});
    for (auto& named : group.parameters) {
      check(named.parameter != nullptr, "optimizer: parameter '", named.name, "' is null");
      const bool is_new = names.insert(named.name).second && parameters.insert(named.parameter).second;
      check(is_new, "optimizer: parameter '", named.name, "' is there twice");
      added.slots.push_back({std::move(named), {}, {}});
    }
  }
}

void Optimizer::set_learning_rate(double lr) {
  check(lr >= 0 && std::isfinite(lr), "optimizer: learning rate ", lr, ", expected 0 or more");
  lr_ = lr;
}

void Optimizer::set_clip_norm(double max_norm) {
  check(max_norm >= 0 && std::isfinite(max_norm), "optimizer: clip norm ", max_norm, ", expected 0 or more");
  if (updates_in_backward_) check_not_clipped(max_norm);
  clip_norm_ = max_norm;
}

void Optimizer::zero_gradients() {
  squared_norm_of_blocks_ = 0;
  for (auto& group : groups_)
    for (auto& slot : group.slots) slot.named.parameter->zero_gradient();
}

void Optimizer::step() {
  begin_step();
  issue_step();
}

void Optimizer::begin_step() {
  for (const auto& group : groups_) {
    if (group.slots.empty()) continue;
    return step_lr_.set(lr_, group.slots.front().named.parameter->value().device());
  }
}

struct Optimizer::RowUpdate {
  const Slot& slot;
  Tensor rows;
  ParameterUpdate copies;

  /// Writes the updated copies back.
  void put() const {
    const auto put_back = [&](const Tensor& copy, Tensor whole) {
      if (copy.defined()) kernels::put_rows(copy, rows, whole);
    };
    put_back(copies.w, slot.named.parameter->value());
    put_back(copies.first, slot.state[0]);
    put_back(copies.second, slot.state[1]);
  }
};

void Optimizer::issue_step() {
  std::vector<RowUpdate> rows;
  const auto updates = gather(rows);
  measure_norm(updates);
  const Tensor scale = gradient_scale();
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (updates[i].empty()) continue;
    update(updates[i], {step_lr_.tensor(), groups_[i].lr_scale, groups_[i].weight_decay, groups_[i].momentum, scale});
    for (const ParameterUpdate& update : updates[i]) update.w.mark_written();
  }
  for (const RowUpdate& update : rows) update.put();
}

void Optimizer::update_in_backward() {
  check_input(by_blocks(), "optimizer: this rule does not update a parameter by blocks of rows, expected sgd");
  check_not_clipped(clip_norm_);
  updates_in_backward_ = true;
  for (auto& group : groups_)
    for (auto& slot : group.slots)
      slot.named.parameter->on_rows(
          [this, &group, &slot](int64_t first, const Tensor& gradient) { update_block(group, slot, first, gradient); });
}

void Optimizer::update_block(Group& group, Slot& slot, int64_t first, const Tensor& gradient) {
  begin_step();
  prepare_state(slot);
  const auto block = [&](const Tensor& whole) {
    return whole.defined() ? whole.slice(first, first + gradient.size(0)) : Tensor();
  };
  const ParameterUpdate own[] = {{.w = block(slot.named.parameter->value()),
                                  .g = gradient,
                                  .first = block(slot.state[0]),
                                  .second = block(slot.state[1])}};
  if (measures_norm_) {
    Tensor squared = Tensor::empty({}, {.dtype = DType::f64, .device = gradient.device()});
    kernels::squared_norm(own, squared);
    squared_norm_of_blocks_ += squared.item();
  }
  update(own, {step_lr_.tensor(), group.lr_scale, group.weight_decay, group.momentum, {}});
  own[0].w.mark_written();
}

std::vector<std::vector<ParameterUpdate>> Optimizer::gather(std::vector<RowUpdate>& rows) {
  std::vector<std::vector<ParameterUpdate>> updates(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (auto& slot : groups_[i].slots) {
      const auto& parameter = *slot.named.parameter;
      const Tensor& w = parameter.value();
      if (const RowGradient& gradient = parameter.row_gradient(); gradient.defined()) {
        prepare_state(slot);
        updates[i].push_back({rows_of(w, gradient.rows), gradient.values, rows_of(slot.state[0], gradient.rows),
                              rows_of(slot.state[1], gradient.rows), slot.steps});
        rows.push_back({slot, gradient.rows, updates[i].back()});
        continue;
      }
      if (!parameter.gradient().defined()) continue;
      check(parameter.gradient().shape() == w.shape(), "optimizer: the gradient of '", slot.named.name, "' is ",
            parameter.gradient().shape(), ", the parameter ", w.shape());
      prepare_state(slot);
      updates[i].push_back({w, parameter.gradient().to(w.format()), slot.state[0], slot.state[1], slot.steps});
    }
  }
  return updates;
}

void Optimizer::prepare_state(Slot& slot) const {
  const Tensor& w = slot.named.parameter->value();
  if (state_names_.empty() || (slot.state[0].defined() && slot.state[0].shape() == w.shape())) return;
  for (size_t k = 0; k < state_names_.size(); ++k) slot.state[k] = Tensor::zeros_like(w);
  if (counts_steps_) slot.steps = Tensor::zeros({}, {.dtype = DType::i64, .device = w.device()});
}

void Optimizer::measure_norm(const std::vector<std::vector<ParameterUpdate>>& updates) {
  squared_norm_ = {};
  const double of_blocks = std::exchange(squared_norm_of_blocks_, 0);
  std::vector<ParameterUpdate> all;
  for (const auto& group : updates) all.insert(all.end(), group.begin(), group.end());
  if (clip_norm_ == 0 && !measures_norm_) return;
  if (!all.empty()) {
    squared_norm_ = Tensor::empty({}, {.dtype = DType::f64, .device = all.front().w.device()});
    kernels::squared_norm(all, squared_norm_);
  }
  if (of_blocks == 0) return;
  const double of_rest = squared_norm_.defined() ? squared_norm_.item() : 0;
  squared_norm_ = Tensor::full({}, of_rest + of_blocks, {.dtype = DType::f64}).to(step_lr_.tensor().device());
}

Tensor Optimizer::gradient_scale() const {
  if (clip_norm_ == 0 || !squared_norm_.defined()) return {};
  Tensor scale = Tensor::empty_like(squared_norm_);
  kernels::clip_scale(squared_norm_, clip_norm_, scale);
  return scale;
}

StateDict Optimizer::state() {
  StateDict state;
  const auto add = [&](std::string_view kind, auto tensor_of) {
    for (auto& group : groups_)
      for (auto& slot : group.slots) {
        prepare_state(slot);
        state.add(join({kind, ".", slot.named.name}), tensor_of(slot));
      }
  };
  for (size_t k = 0; k < state_names_.size(); ++k)
    add(state_names_[k], [k](const Slot& slot) { return slot.state[k]; });
  if (counts_steps_) add(kStepState, [](const Slot& slot) { return slot.steps; });
  return state;
}

void Optimizer::load_state(const StateDict& state) {
  StateDict given;
  const auto add = [&](std::string name, const Tensor& tensor) {
    if (name.starts_with(kStepState) && tensor.rank() == 0)
      check_input(tensor.item() >= 0, "load: '", name, "' is ", tensor.item(), ", expected 0 or more");
    given.add(std::move(name), tensor);
  };
  for (const auto& [name, tensor] : state) {
    if (counts_steps_ && name == kStepState)
      for (const auto& group : groups_)
        for (const auto& slot : group.slots) add(join({kStepState, ".", slot.named.name}), tensor);
    else
      add(name, tensor);
  }
  copy_state(given, this->state(), "the optimizer");
}

}  // namespace tern
