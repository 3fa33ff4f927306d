#include "tern/optim/optimizer.h"

#include <algorithm>
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

void detail::check_has_value(const char* who, const NamedParameter& named) {
  check(named.parameter->value().defined(), who, ": '", named.name,
        "' has no value yet; call initialize(seed) on the model first");
}

std::vector<ParameterGroup> group_parameters(const std::vector<NamedParameter>& parameters,
                                             std::span<const GroupRule> rules) {
  std::vector<ParameterGroup> groups;
  for (const GroupRule& rule : rules) groups.push_back({.parameters = {}, .settings = rule.settings});
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

constexpr size_t kMostStates = 2;  // of a parameter

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

void check_rate(double lr) {
  check(lr >= 0 && std::isfinite(lr), "optimizer: learning rate ", lr, ", expected 0 or more");
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay,
                     std::shared_ptr<const StepRule> rule) {
  std::set<std::string> names;
  std::set<const Parameter*> parameters;
  for (auto& group : groups) {
    if (!group.settings.rule) group.settings.rule = rule;
    check(group.settings.rule != nullptr, "optimizer: a group has no rule, and the optimizer has none for it");
    if (!group.settings.weight_decay) group.settings.weight_decay = weight_decay;
    const double decay = *group.settings.weight_decay, lr_scale = group.settings.lr_scale;
    check(decay >= 0 && std::isfinite(decay), "optimizer: weight decay ", decay, ", expected 0 or more");
    check(lr_scale >= 0 && std::isfinite(lr_scale), "optimizer: learning rate scale ", lr_scale,
          ", expected 0 or more");
    for (const auto& named : group.parameters) {
      check(named.parameter != nullptr, "optimizer: parameter '", named.name, "' is null");
      const bool is_new = names.insert(named.name).second && parameters.insert(named.parameter).second;
      check(is_new, "optimizer: parameter '", named.name, "' is there twice");
    }
    group.settings.rule->check_group(group);
    Group& added = groups_.emplace_back(Group{
        .slots = {}, .settings = group.settings, .state_names = group.settings.rule->state_names(group.settings)});
    const size_t states = added.state_names.size();
    check(states <= kMostStates && (states > 0 || !group.settings.rule->counts_steps()), "optimizer: a rule has ",
          states, " states, expected at most ", kMostStates, ", and one or more if it counts steps");
    for (auto& named : group.parameters) added.slots.push_back({std::move(named), {}, {}});
  }
  set_learning_rate(lr);
}

bool Optimizer::by_blocks() const {
  return std::ranges::all_of(groups_, [](const Group& group) { return group.settings.rule->by_blocks(); });
}

void Optimizer::set_learning_rate(double lr) {
  check_rate(lr);
  lr_ = lr;
  for (Group& group : groups_) group.lr = lr * group.settings.lr_scale;
}

void Optimizer::set_learning_rate(size_t group, double lr) {
  check(group < groups_.size(), "optimizer: group ", group, ", expected less than ", groups_.size());
  check_rate(lr);
  groups_[group].lr = lr;
}

std::optional<Device> Optimizer::device() const {
  for (const Group& group : groups_) {
    if (group.slots.empty()) continue;
    detail::check_has_value("optimizer", group.slots.front().named);
    return group.slots.front().named.parameter->value().device();
  }
  return std::nullopt;
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
  const auto place = device();
  for (Group& group : groups_)
    if (!group.slots.empty()) group.step_lr.set(group.lr, *place);
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
    groups_[i].settings.rule->update(updates[i], groups_[i].step(scale));
    for (const ParameterUpdate& update : updates[i]) {
      update.w.mark_written();
      update.copy.mark_written();
    }
  }
  for (const RowUpdate& update : rows) update.put();
}

void Optimizer::update_in_backward() {
  check_input(by_blocks(), "optimizer: a rule does not update parameters by blocks of rows, expected sgd");
  check_not_clipped(clip_norm_);
  updates_in_backward_ = true;
  for (auto& group : groups_)
    for (auto& slot : group.slots)
      slot.named.parameter->on_rows(
          [this, &group, &slot](int64_t first, const Tensor& gradient) { update_block(group, slot, first, gradient); });
}

void Optimizer::update_block(Group& group, Slot& slot, int64_t first, const Tensor& gradient) {
  begin_step();
  prepare_state(group, slot);
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
  group.settings.rule->update(own, group.step({}));
  own[0].w.mark_written();
}

std::vector<std::vector<ParameterUpdate>> Optimizer::gather(std::vector<RowUpdate>& rows) {
  std::vector<std::vector<ParameterUpdate>> updates(groups_.size());
  std::vector<kernels::Conversion> conversions;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    for (auto& slot : groups_[i].slots) {
      const auto& parameter = *slot.named.parameter;
      const Tensor& w = parameter.value();
      const auto check_dtype = [&] {
        const bool fits = w.dtype() == (updates[i].empty() ? w : updates[i].front().w).dtype();
        check((w.dtype() == DType::f32 || w.dtype() == DType::f64) && fits, "optimizer: '", slot.named.name, "' is ",
              w.dtype(), ", expected f32 or f64, the same in the whole group");
      };
      const RowGradient& gradient = parameter.row_gradient();
      if (gradient.defined() && group.settings.rule->by_rows()) {
        check_dtype();
        prepare_state(group, slot);
        updates[i].push_back({rows_of(w, gradient.rows), gradient.values, rows_of(slot.state[0], gradient.rows),
                              rows_of(slot.state[1], gradient.rows), slot.steps});
        rows.push_back({slot, gradient.rows, updates[i].back()});
        continue;
      }
      Tensor g = parameter.narrow_gradient();
      const bool taken = g.defined() && g.device().type != DeviceType::cpu && g.format() == w.format() &&
                         group.settings.rule->takes_narrow();
      if (!taken) g = parameter.gradient();
      if (!g.defined()) continue;
      check_dtype();
      check(g.shape() == w.shape(), "optimizer: the gradient of '", slot.named.name, "' is ", g.shape(),
            ", the parameter ", w.shape());
      check(taken || g.dtype() == w.dtype(), "optimizer: the gradient of '", slot.named.name, "' is ", g.dtype(),
            ", the parameter ", w.dtype());
      prepare_state(group, slot);
      if (g.format() != w.format())
        g = conversions.emplace_back(kernels::Conversion{g, Tensor::empty(w.shape(), w.options())}).y;
      Tensor copy = group.settings.rule->writes_copies() ? parameter.current_copy() : Tensor();
      if (copy.defined() && copy.format() != w.format()) copy = {};
      updates[i].push_back({w, g, slot.state[0], slot.state[1], slot.steps, copy});
    }
  }
  if (!conversions.empty()) kernels::convert_all(conversions);
  return updates;
}

void Optimizer::prepare_state(const Group& group, Slot& slot) {
  detail::check_has_value("optimizer", slot.named);
  const Tensor& w = slot.named.parameter->value();
  if (group.state_names.empty() || (slot.state[0].defined() && slot.state[0].shape() == w.shape())) return;
  for (size_t k = 0; k < group.state_names.size(); ++k) slot.state[k] = Tensor::zeros_like(w);
  if (group.settings.rule->counts_steps()) slot.steps = Tensor::zeros({}, {.dtype = DType::i64, .device = w.device()});
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
  squared_norm_ = Tensor::full({}, of_rest + of_blocks, {.dtype = DType::f64}).to(device().value_or(Device()));
}

Tensor Optimizer::gradient_scale() const {
  if (clip_norm_ == 0 || !squared_norm_.defined()) return {};
  Tensor scale = Tensor::empty_like(squared_norm_);
  kernels::clip_scale(squared_norm_, clip_norm_, scale);
  return scale;
}

StateDict Optimizer::state() {
  StateDict state;
  for (size_t k = 0; k <= kMostStates; ++k)
    for (Group& group : groups_)
      for (Slot& slot : group.slots) {
        prepare_state(group, slot);
        if (k < group.state_names.size())
          state.add(join({group.state_names[k], ".", slot.named.name}), slot.state[k]);
        else if (k == kMostStates && group.settings.rule->counts_steps())
          state.add(join({kStepState, ".", slot.named.name}), slot.steps);
      }
  return state;
}

void Optimizer::load_state(const StateDict& state) {
  StateDict given;
  const auto add = [&](std::string name, const Tensor& tensor) {
    if (name.starts_with(kStepState) && tensor.rank() == 0)
      check_input(tensor.item() >= 0, "load: '", name, "' is ", tensor.item(), ", expected 0 or more");
    given.add(std::move(name), tensor);
  };
  const bool counted =
      std::ranges::any_of(groups_, [](const Group& group) { return group.settings.rule->counts_steps(); });
  for (const auto& [name, tensor] : state) {
    if (name != kStepState || !counted) {
      add(name, tensor);
      continue;
    }
    for (const Group& group : groups_)
      if (group.settings.rule->counts_steps())
        for (const Slot& slot : group.slots) add(join({kStepState, ".", slot.named.name}), tensor);
  }
  copy_state(given, this->state(), "the optimizer");
}

}  // namespace tern
