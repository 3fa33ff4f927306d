#include "tern/optim/average.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/kernels/update.h"

namespace tern {

ParameterAverage::ParameterAverage(std::vector<NamedParameter> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay), updates_(Tensor::zeros({}, {.dtype = DType::i64})) {
  check(decay >= 0 && decay < 1, "average: decay ", decay, ", expected [0, 1)");
  for (const NamedParameter& named : parameters_) {
    detail::check_has_value("average", named);
    averages_.push_back(named.parameter->value().clone());
  }
}

void ParameterAverage::update() {
  begin_update();
  issue_update();
}

void ParameterAverage::begin_update() {
  check_swapped_out("updated");
  check_shapes();
  if (parameters_.empty()) return;
  auto& t = *updates_.data<int64_t>();
  const double warm = (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t));
  step_decay_.set(std::min(decay_, warm), averages_.front().device());
  ++t;
  for (const Tensor& average : averages_) average.mark_written();
}

void ParameterAverage::issue_update() {
  check_swapped_out("updated");
  check_shapes();
  std::vector<kernels::ParameterUpdate> updates;
  updates.reserve(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i)
    updates.push_back({.w = parameters_[i].parameter->value(), .g = {}, .first = averages_[i], .second = {}});
  if (!updates.empty()) kernels::average_update(updates, step_decay_.tensor());
}

void ParameterAverage::check_swapped_out(const char* found) const {
  check(!swapped_, "average: ", found, " while swapped in, expected to be swapped out first");
}

void ParameterAverage::check_shapes() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const Tensor &value = parameter->value(), &average = averages_[i];
    check(value.shape() == average.shape() && value.dtype() == average.dtype(), "average: '", name, "' is now ",
          value.dtype(), " ", value.shape(), ", its average ", average.dtype(), " ", average.shape(),
          "; make a new average of the changed model");
  }
}

void ParameterAverage::swap() {
  check_shapes();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor value = parameters_[i].parameter->value();
    parameters_[i].parameter->set_value(averages_[i]);
    averages_[i] = value;
  }
  swapped_ = !swapped_;
}

StateDict ParameterAverage::state() {
  check_swapped_out("state taken");
  StateDict state;
  for (size_t i = 0; i < parameters_.size(); ++i) state.add("average." + parameters_[i].name, averages_[i]);
  state.add("updates", updates_);
  return state;
}

void ParameterAverage::load_state(const StateDict& state) {
  const Tensor* const updates = state.find("updates");
  check_input(updates == nullptr || updates->numel() != 1 || updates->item() >= 0, "load: 'updates' is ",
              updates == nullptr ? 0 : updates->item(), ", the average expects 0 or more");
  copy_state(state, this->state(), "the average");
}

}  // namespace tern
