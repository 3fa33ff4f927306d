#include "tern/dist/methods/data_parallel.h"

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"
#include "tern/dist/methods/tensors.h"
#include "tern/kernels/elementwise.h"
#include "tern/optim/optimizer.h"

namespace tern {
namespace {

const std::string kMeanPrefix = "last mean.";

}  // namespace

DataParallel::DataParallel(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local),
      communicator_(communicator),
      options_(options),
      parameters_(model.trained_parameters()),
      averaging_(communicator, averaged_parameters(model, "data-parallel"), options.averaging) {
  if (!options.averaging.overlap) return;
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].parameter->on_gradient_ready([this, i] { give(i); });
}

DataParallel::~DataParallel() {
  if (!options_.averaging.overlap) return;
  for (const auto& [name, parameter] : parameters_) parameter->on_gradient_ready({});
}

void DataParallel::begin_step(int64_t step) {
  step_ = step;
  if (!options_.averaging.stale) averaging_.begin(step);
}

void DataParallel::give(size_t i) {
  const auto& [name, parameter] = parameters_[i];
  Tensor gradient = needed_gradient(parameters_[i], "data-parallel", step_.value_or(-1));
  if (options_.weight_decay_in_gradient != 0 && decays(model_, name)) {
    Tensor decayed = Tensor::empty_like(parameter->value());
    kernels::scale(parameter->value(), options_.weight_decay_in_gradient, decayed);
    kernels::accumulate(laid_out_as(decayed, gradient), decayed);
    gradient = decayed;
  }
  averaging_.give(i, gradient);
}

void DataParallel::give_all() {
  for (size_t i = parameters_.size(); i-- > 0;) give(i);
}

void DataParallel::settle() {
  if (std::exchange(under_way_, false)) means_ = averaging_.finish();
}

std::vector<Tensor> DataParallel::take_means() {
  if (!options_.averaging.stale) {
    if (!options_.averaging.overlap) give_all();
    return averaging_.finish();
  }
  settle();
  averaging_.begin(*step_);
  give_all();
  under_way_ = true;
  return std::exchange(means_, {});
}

bool DataParallel::set_means() {
  check(step_.has_value(), "data-parallel: step without begin_step");
  const std::vector<Tensor> means = take_means();
  for (size_t i = 0; i < means.size(); ++i) {
    Parameter& parameter = *parameters_[i].parameter;
    parameter.set_gradient(means[i].to(parameter.value().device()));
  }
  return !means.empty();
}

void DataParallel::step() {
  if (set_means()) local_.step();
  end_step();
}

void DataParallel::issue_step() {
  set_means();
  local_.issue_step();
}

void DataParallel::end_step() {
  if (options_.check_every > 0 && *step_ % options_.check_every == 0)
    check_same_parameters(communicator_, parameters_, *step_);
  step_.reset();
}

void DataParallel::consolidate() {
  settle();  // the bytes of every step are on the ledger before an evaluation
  broadcast_buffers(communicator_, model_, 0);
}

StateDict DataParallel::state() {
  settle();
  StateDict state = averaging_.state();
  for (size_t i = 0; i < means_.size(); ++i) state.add(kMeanPrefix + parameters_[i].name, means_[i].clone());
  return state;
}

void DataParallel::load_state(const StateDict& state, int64_t steps) {
  StateDict residuals, means, expected;
  for (const auto& [name, tensor] : state) (name.starts_with(kMeanPrefix) ? means : residuals).add(name, tensor);
  settle();  // what is under way belongs to the state before
  averaging_.load_state(residuals, steps > 0);
  means_.clear();
  if (means.size() == 0 && (steps == 0 || !options_.averaging.stale)) return;
  check_input(options_.averaging.stale, "data-parallel: found the means of a step that the next step uses, expected ",
              "none without stale exchanges");
  for (const auto& [name, parameter] : parameters_) {
    means_.push_back(Tensor::empty(parameter->value().shape()));
    expected.add(kMeanPrefix + name, means_.back());
  }
  copy_state(means, expected, "the last step's means");
}

}  // namespace tern
