#include "tern/dist/methods/local_sgd.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"
#include "tern/dist/methods/tensors.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/update.h"

namespace tern {
namespace {

constexpr std::string_view kCodec = "codec.", kOwn = "own.", kBase = "base.", kVelocity = "outer.", kMean = "mean.";

void check_options(const LocalSgd::Options& options, size_t parameters) {
  const auto& [fragments, delay, mix] = options.streaming;
  check_input(options.local_steps > 0, options.name, ": ", options.local_steps, " local steps, expected 1 or more");
  check_input(!options.averaging.overlap, options.name, ": nothing is sent during backward that could overlap it");
  check_input(!options.averaging.stale, options.name,
              ": a round ends with its own exchange, not with the last round's");
  check_input(options.outer.lr > 0, options.name, ": an outer learning rate of ", options.outer.lr,
              ", expected above 0");
  check_input(options.outer.momentum >= 0 && options.outer.momentum < 1, options.name, ": an outer momentum of ",
              options.outer.momentum, ", expected [0, 1)");
  const int64_t most = std::min(options.local_steps, static_cast<int64_t>(parameters));
  check_input(fragments >= 1 && fragments <= most, options.name, ": ", fragments, " fragments, expected 1 to ", most,
              ", because each has a step of the round and a parameter of its own");
  check_input(delay >= 0 && delay < options.local_steps, options.name, ": a delay of ", delay, " steps, expected 0 to ",
              options.local_steps - 1, ", less than the round");
  check_input(mix >= 0 && mix < 1, options.name, ": a mix of ", mix, ", expected [0, 1)");
}

int64_t remainder(int64_t x, int64_t n) { return ((x % n) + n) % n; }

}  // namespace

LocalSgd::LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local), communicator_(communicator), options_(options), own_(model) {
  check_options(options, own_.parameters().size());
  AveragingOptions averaging = options.averaging;
  averaging.stale = options.streaming.delay > 0;
  fragments_ = cut(averaging);
}

std::vector<LocalSgd::Fragment> LocalSgd::cut(const AveragingOptions& averaging) {
  std::vector<AveragedTensor> tensors = averaged_parameters(model_, options_.name);
  leave_uncoded(tensors, averaging.fusion.keep_float);
  int64_t total = 0;
  for (const AveragedTensor& tensor : tensors) total += tensor.elements;
  for (const auto& [name, buffer] : own_.buffers()) tensors.push_back({name, buffer->numel(), false});

  AveragingOptions of_fragment = averaging;
  of_fragment.fusion.keep_float.clear();
  std::vector<Fragment> fragments;
  const int64_t count = options_.streaming.fragments;
  const size_t all = own_.parameters().size();
  int64_t elements = 0;
  for (int64_t p = 0; p < count; ++p) {
    Fragment fragment = {.begin = fragments.empty() ? 0 : fragments.back().end,
                         .offset = p * options_.local_steps / count};
    const size_t last_end = all - static_cast<size_t>(count - 1 - p);  // one parameter for each later fragment
    fragment.end = fragment.begin;
    do elements += tensors[fragment.end++].elements;
    while (fragment.end < last_end && (p == count - 1 || elements < total * (p + 1) / count));
    const size_t end = averages_buffers(fragment) ? tensors.size() : fragment.end;
    fragment.averaging = std::make_unique<Averaging>(
        communicator_,
        std::vector<AveragedTensor>(tensors.begin() + static_cast<std::ptrdiff_t>(fragment.begin),
                                    tensors.begin() + static_cast<std::ptrdiff_t>(end)),
        of_fragment);
    fragments.push_back(std::move(fragment));
  }
  return fragments;
}

int64_t LocalSgd::first_turn(const Fragment& fragment) const {
  const int64_t earliest = options_.streaming.delay + 1;  // the first step must be over before anything is sent
  return earliest + remainder(fragment.offset - earliest, options_.local_steps);
}

bool LocalSgd::has_base_in_model(const Fragment& fragment, int64_t steps) const {
  if (steps == 0) return true;
  return options_.streaming.mix == 0 && steps >= first_turn(fragment) &&
         remainder(steps - fragment.offset, options_.local_steps) == 0;
}

bool LocalSgd::is_sent_before_turn(const Fragment& fragment, int64_t steps) const {
  const int64_t since = remainder(steps - fragment.offset + options_.streaming.delay, options_.local_steps);
  return since < options_.streaming.delay && steps - since >= 1;
}

std::vector<LocalSgd::WriteMark> LocalSgd::marks_of(std::span<const Tensor> tensors) {
  std::vector<WriteMark> marks;
  for (const Tensor& tensor : tensors) marks.push_back({tensor.raw_data(), tensor.version()});
  return marks;
}

void LocalSgd::begin_step(int64_t step) {
  step_ = step;
  own_.take_back();
  for (Fragment& fragment : fragments_) {
    if (fragment.in_round) continue;
    check(has_base_in_model(fragment, step), options_.name, ": step ", step, " lies within a round of ",
          options_.local_steps, " steps that was neither begun nor loaded");
    fragment.in_round = true;
    const std::vector<Tensor> own = values(fragment);
    const auto parameters = std::span(own).first(fragment.size());
    if (fragment.base.empty() || marks_of(parameters) != fragment.marks) fragment.base = clones_of(parameters);
  }
}

void LocalSgd::step() {
  check(fragments_.front().in_round, options_.name, ": step without begin_step");
  local_.step();
  const int64_t done = step_ + 1, length = options_.local_steps, delay = options_.streaming.delay;
  for (Fragment& fragment : fragments_) {
    if (remainder(done - fragment.offset + delay, length) == 0) send(fragment);
    if (remainder(done - fragment.offset, length) == 0 && fragment.under_way) take_turn(fragment);
  }
}

void LocalSgd::send(Fragment& fragment) {
  Averaging& averaging = *fragment.averaging;
  averaging.begin(step_);
  const std::vector<Tensor> own = values(fragment);
  for (size_t i = fragment.size(); i < own.size(); ++i) averaging.give(i, own[i]);
  for (size_t i = 0; i < fragment.size(); ++i) averaging.give_difference(i, fragment.base[i], own[i]);
  fragment.under_way = true;
}

void LocalSgd::settle(Fragment& fragment) {
  if (fragment.under_way && fragment.means.empty()) fragment.means = fragment.averaging->finish();
}

void LocalSgd::take_turn(Fragment& fragment) {
  settle(fragment);
  const std::vector<Tensor> means = std::exchange(fragment.means, {});
  fragment.under_way = false;

  const double mix = options_.streaming.mix;
  const std::vector<Tensor> shared = values(fragment);
  const std::vector<Tensor> own = mix > 0 ? clones_of(shared) : std::vector<Tensor>();
  update_base(fragment, std::span(means).first(fragment.size()), std::span(shared).first(fragment.size()));
  for (size_t i = fragment.size(); i < shared.size(); ++i) shared[i].copy_from(means[i]);
  const auto first = own_.parameters().begin();
  const std::vector<NamedParameter> compared(first + static_cast<std::ptrdiff_t>(fragment.begin),
                                             first + static_cast<std::ptrdiff_t>(fragment.end));
  check_after_round(communicator_, compared, step_, options_.local_steps, options_.check_every);
  fragment.in_round = mix > 0;
  fragment.marks = marks_of(std::span(shared).first(fragment.size()));
  if (mix == 0) return;
  std::vector<kernels::ParameterUpdate> mixed;
  for (size_t i = 0; i < shared.size(); ++i) mixed.push_back({own[i], {}, shared[i], {}});
  kernels::average_update(mixed, number_on(shared.front().device(), 1 - mix));
}

void LocalSgd::update_base(Fragment& fragment, std::span<const Tensor> changes, std::span<const Tensor> parameters) {
  const bool has_momentum = options_.outer.momentum > 0;
  if (has_momentum && fragment.velocity.empty()) fragment.velocity = zeros_like(fragment.base);
  std::vector<kernels::ParameterUpdate> updates;
  for (size_t i = 0; i < changes.size(); ++i) {
    const Tensor change = laid_out_as(fragment.base[i], changes[i]);
    updates.push_back(
        {fragment.base[i], change, has_momentum ? fragment.velocity[i] : Tensor(), {}, {}, parameters[i]});
  }
  kernels::sgd_update(updates, {.lr = number_on(fragment.base.front().device(), options_.outer.lr),
                                .momentum = options_.outer.momentum,
                                .nesterov = has_momentum});
  for (const Tensor& parameter : parameters) parameter.mark_written();
}

void LocalSgd::consolidate() {
  for (Fragment& fragment : fragments_) settle(fragment);  // the bytes are on the ledger before an evaluation
  if (std::ranges::any_of(fragments_, &Fragment::in_round)) own_.show_mean(communicator_, wait_);
}

std::vector<Tensor> LocalSgd::values(const Fragment& fragment) const {
  const std::vector<Tensor> all = own_.values();
  return {all.begin() + static_cast<std::ptrdiff_t>(fragment.begin),
          averages_buffers(fragment) ? all.end() : all.begin() + static_cast<std::ptrdiff_t>(fragment.end)};
}

StateDict LocalSgd::round_state() const {
  StateDict state;
  const auto add = [&](std::string_view prefix, size_t begin, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) state.add(std::string(prefix) + own_.name(begin + i), tensors[i]);
  };
  own_.add_to(state, kOwn);
  for (const Fragment& fragment : fragments_) {
    if (fragment.in_round) add(kBase, fragment.begin, fragment.base);
    add(kVelocity, fragment.begin, fragment.velocity);
    add(kMean, fragment.begin, fragment.means);
  }
  return state;
}

StateDict LocalSgd::state() {
  for (const Fragment& fragment : fragments_)
    check(!fragment.in_round || own_.shows_mean(), options_.name, ": a checkpoint is taken after consolidate");
  StateDict state = round_state();
  for (const Fragment& fragment : fragments_)
    for (const auto& [name, tensor] : fragment.averaging->state()) state.add(std::string(kCodec) + name, tensor);
  return state;
}

void LocalSgd::load_state(const StateDict& state, int64_t steps) {
  StateDict round, codec;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(kCodec))
      codec.add(name.substr(kCodec.size()), tensor);
    else
      round.add(name, tensor);
  }
  bool in_round = false;
  for (Fragment& fragment : fragments_) {
    const std::vector<Tensor> own = values(fragment);
    const auto parameters = std::span(own).first(fragment.size());
    const bool in_model = has_base_in_model(fragment, steps);
    const bool has_velocity = options_.outer.momentum > 0 && steps >= first_turn(fragment);
    fragment.under_way = is_sent_before_turn(fragment, steps);
    fragment.in_round = !in_model;
    fragment.base = in_model ? std::vector<Tensor>() : clones_of(parameters);
    fragment.velocity = has_velocity ? clones_of(parameters) : std::vector<Tensor>();
    fragment.means = fragment.under_way ? clones_of(own) : std::vector<Tensor>();
    in_round = in_round || !in_model;
  }
  own_.prepare_load(in_round);
  copy_state(round, round_state(), "a round of local SGD");

  std::vector<StateDict> parts(fragments_.size());
  for (const auto& [name, tensor] : codec) {
    const auto owner = std::ranges::find_if(
        fragments_, [&name = name](const Fragment& fragment) { return fragment.averaging->has_state_named(name); });
    const size_t p = owner == fragments_.end() ? 0 : static_cast<size_t>(owner - fragments_.begin());
    parts[p].add(name, tensor);  // an unknown name goes to the first one, which refuses it
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    const bool was_sent = fragments_[p].under_way || steps >= first_turn(fragments_[p]);
    fragments_[p].averaging->load_state(parts[p], was_sent);
  }
}

void LocalSgd::confirm(int64_t steps) const {
  for (const Fragment& fragment : fragments_) fragment.averaging->confirm(steps);
}

ExchangeTimes LocalSgd::times() const {
  ExchangeTimes times = {.wait = wait_};
  for (const Fragment& fragment : fragments_) times = times + fragment.averaging->times();
  return times;
}

}  // namespace tern
