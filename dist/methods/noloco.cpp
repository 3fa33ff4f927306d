#include "tern/dist/methods/noloco.h"

#include <algorithm>
#include <numeric>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tern/core/stopwatch.h"
#include "tern/dist/codec/fused_gradients.h"
#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/tensors.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

constexpr std::string_view kOwnModel = "own.", kSlow = "slow.", kMomentum = "outer.";

}  // namespace

NoLoCo::NoLoCo(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local), communicator_(communicator), options_(options), own_(model) {
  check_input(options.local_steps > 0, "noloco: ", options.local_steps, " local steps, expected 1 or more");
  check_input(options.lr > 0, "noloco: an outer learning rate of ", options.lr, ", expected above 0");
  check_input(options.momentum >= 0 && options.momentum < 1, "noloco: an outer momentum of ", options.momentum,
              ", expected [0, 1)");
  averaged_parameters(model, "noloco");  // checks their dtype
}

void NoLoCo::begin_step(int64_t step) {
  step_ = step;
  own_.take_back();
  const std::vector<Tensor> values = own_.values();
  const auto parameters = std::span(values).first(own_.parameters().size());
  if (velocity_.empty()) {
    check(step == 0, "noloco: step ", step, " of a run that was neither begun nor loaded");
    velocity_ = zeros_like(parameters);
  }
  if (!slow_.empty()) return;
  check(step % options_.local_steps == 0, "noloco: step ", step, " lies within a round of ", options_.local_steps,
        " steps that was neither begun nor loaded");
  slow_ = clones_of(parameters);
}

void NoLoCo::step() {
  check(!slow_.empty(), "noloco: step without begin_step");
  local_.step();
  if ((step_ + 1) % options_.local_steps == 0) meet();
}

int NoLoCo::partner(int64_t step) const {
  std::vector<int> order(static_cast<size_t>(communicator_.size()));
  std::iota(order.begin(), order.end(), 0);
  const RandomStream random({.seed = options_.seed, .purpose = Purpose::pairs, .step = static_cast<uint32_t>(step)});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, static_cast<uint32_t>(i))]);
  const auto place = static_cast<size_t>(std::ranges::find(order, communicator_.rank()) - order.begin());
  return (place ^ 1) < order.size() ? order[place ^ 1] : order[place];
}

void NoLoCo::meet() {
  const std::vector<Tensor> values = own_.values();
  FusedGradients parts;
  for (const Tensor& value : values) parts.push_back({{}, value});
  FlatTensors sum = FlatTensors::copy(parts);  // over the pair
  const int other = partner(step_);
  const bool alone = other == communicator_.rank();
  // A rank that stays alone takes part too, with nothing.
  const Tensor mine = alone ? sum.whole.slice(0, 0) : sum.whole;
  Tensor theirs = Tensor::empty_like(mine);
  std::vector<int64_t> counts(static_cast<size_t>(communicator_.size()));
  counts[static_cast<size_t>(other)] = mine.numel();
  const Work work = communicator_.all_to_all(mine, counts, theirs, counts);
  {
    const Stopwatch waiting(times_.wait);
    work.wait();
  }
  if (!alone) kernels::accumulate(theirs, sum.whole);
  const double share = alone ? 1 : 0.5;

  std::vector<kernels::ParameterUpdate> updates;
  for (size_t i = 0; i < slow_.size(); ++i)
    updates.push_back({slow_[i], laid_out_as(slow_[i], sum.parts[i]), velocity_[i], {}});
  // m ← μ m + β share sum - β φ;  φ ← φ + m
  const Device device = slow_.front().device();
  kernels::sgd_update(updates, {.lr = number_on(device, -1),
                                .momentum = options_.momentum,
                                .weight_decay = -options_.lr,
                                .gradient_scale = number_on(device, options_.lr * share)});
  for (size_t i = 0; i < values.size(); ++i) {
    if (i >= slow_.size()) kernels::scale(sum.parts[i], share, sum.parts[i]);
    values[i].copy_from(i < slow_.size() ? slow_[i] : sum.parts[i]);
  }
  slow_.clear();
}

StateDict NoLoCo::state() {
  check(own_.shows_mean() || velocity_.empty(), "noloco: a checkpoint is taken after consolidate");
  StateDict state;
  own_.add_to(state, kOwnModel);
  for (size_t i = 0; i < slow_.size(); ++i) state.add(std::string(kSlow) + own_.name(i), slow_[i]);
  for (size_t i = 0; i < velocity_.size(); ++i) state.add(std::string(kMomentum) + own_.name(i), velocity_[i]);
  return state;
}

void NoLoCo::load_state(const StateDict& state, int64_t steps) {
  const std::vector<Tensor> values = own_.values();
  const auto parameters = std::span(values).first(own_.parameters().size());
  own_.prepare_load(steps > 0);
  slow_ = steps % options_.local_steps == 0 ? std::vector<Tensor>() : clones_of(parameters);
  velocity_ = steps == 0 ? std::vector<Tensor>() : clones_of(parameters);
  copy_state(state, this->state(), "a round of NoLoCo");
}

}  // namespace tern
