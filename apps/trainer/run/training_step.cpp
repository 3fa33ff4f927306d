#include <chrono>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/run/trainer.h"

// A training step: it is issued, its output arrives later, and then it is finished. A group of steps (`--log-every`) is
// issued before the first of them is finished.

namespace tern::trainer {
namespace {

/// Adds `numbers` to `sums`, which may be empty.
void add(const std::vector<double>& numbers, std::vector<double>& sums) {
  sums.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
}

}  // namespace

void Trainer::train_step() {
  const auto begin = std::chrono::steady_clock::now();
  const OperationTiming timing(clock_.get());
  const Spent at_begin = spent();
  if (clock_) clock_->begin("next_batch");
  auto batch = feed_->next();
  const double lr = schedule_(steps_);
  method_->begin_step(steps_);
  optimizer_->zero_gradients();
  optimizer_->set_learning_rate(lr);
  for (const auto& [group, schedule] : group_schedules_) optimizer_->set_learning_rate(group, schedule(steps_));
  const bool stop = resources_.interrupt.interrupted();
  std::vector<double> before;
  for (int64_t i = 1; i < settings_.accumulate; ++i) {
    add(accumulate(*batch, stop), before);
    feed_->prefetch();
    batch = feed_->next();
  }
  const bool recorded = runs_as_graph(*batch);
  IssuedStep step =
      recorded && records_whole_steps_ ? replay(*batch, stop) : issue(*batch, stop, std::move(before), recorded);
  const Spent at_end = spent();
  // First the steps before: if a loss is not finite, the message reads their last batch, whose memory the prefetch
  // takes.
  const bool finishes_before = !issued_.empty() && ends_group();
  if (finishes_before) finish(at_end);
  feed_->prefetch();
  ++steps_;
  step.report = {.step = steps_,
                 .epoch = (steps_ - 1) / steps_per_epoch() + 1,
                 .lr = lr,
                 .traffic = at_end.traffic - at_begin.traffic,
                 .times = at_end.times - at_begin.times};
  if (!issued_.empty()) issued_.back().batch.reset();
  issued_.push_back(std::move(step));
  const bool now = finishes_now(stop);
  if (kept_ && (now || ends_group())) kept_->bring(issued_.size());
  if (now) finish(finishes_before ? spent() : at_end);
  if (clock_) clock_->begin(nullptr);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  resources_.pulse.beat();
  (issued_.empty() ? finished_.back() : issued_.back().report).seconds = seconds_;
  tell();
  if (listeners_.empty() || !histograms_due(steps_)) return;
  const HistogramReport histograms = count_values();
  for (const auto& listener : listeners_) listener->counted(histograms);
}

/// Tells the listeners of the steps that have been finished.
void Trainer::tell() {
  std::vector<StepReport> reports = std::exchange(finished_, {});
  for (StepReport& report : reports) {
    report.is_newest = &report == &reports.back();
    for (const auto& listener : listeners_) listener->stepped(report);
  }
}

bool Trainer::runs_as_graph(const DeviceBatch& batch) {
  if (!graph_ || histograms_due(steps_ + 1)) return false;  // a replay of a whole step keeps no gradients
  optimizer_->begin_step();                                 // a recording must not have the rates of its own step
  try {
    return graph_->takes(batch);
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    graph_.reset();
    if (records_whole_steps_) method_->begin_step(steps_);  // the recording has begun the exchange
    for (const auto& listener : listeners_)
      listener->noted(join({"steps run operation by operation, since none could be recorded: ", error.what()}));
    return false;
  }
}

Forward Trainer::forward(const DeviceBatch& batch) {
  model_->begin_step({.seed = static_cast<uint64_t>(settings_.seed),
                      .step = static_cast<uint32_t>(steps_),
                      .samples = batch.indices()});
  return forward_pass(*task_, *model_, batch);
}

/// What the scores of a training step are counted from; nothing if nobody sees them.
std::vector<Tensor> Trainer::scored(const Forward& pass) const {
  return counts_scores_ ? pass.values() : std::vector<Tensor>();
}

/// A batch before the last of a step: adds its part of the mean to the gradients. Returns its numbers.
std::vector<double> Trainer::accumulate(const DeviceBatch& batch, bool stop) {
  const Forward pass = forward(batch);
  const auto arrival = outputs_->bring({pass.loss.value(), scored(pass)});
  part_of_mean(pass.loss).backward();
  const StepOutput output = arrival();
  check_loss(batch, output, steps_ + 1);
  method_->confirm(steps_);
  return numbers(batch, output, stop);
}

void Trainer::check_loss(const DeviceBatch& batch, const StepOutput& output, int64_t step, bool is_of_batch) const {
  check_finite(output.loss.item(), join({"at step ", step}), *model_, *task_, batch, is_of_batch);
}

/// The loss of a batch as a part of the mean loss of its step.
Variable Trainer::part_of_mean(const Variable& loss) const {
  return settings_.accumulate == 1 ? loss : scale(loss, 1 / static_cast<double>(settings_.accumulate));
}

/// Issues a step operation by operation, or its last batch. `before` are the numbers of the batches before. If it is
/// `recorded`, forward and backward are a replay.
Trainer::IssuedStep Trainer::issue(const DeviceBatch& batch, bool stop, std::vector<double> before, bool recorded) {
  Variable loss;
  StepOutput output;
  if (recorded) {
    output = graph_->run(batch, static_cast<uint32_t>(steps_));
  } else {
    const Forward pass = forward(batch);
    loss = part_of_mean(pass.loss);
    output = {pass.loss.value(), scored(pass)};
  }
  IssuedStep step{.batch = batch, .stop = stop, .numbers = std::move(before)};
  StepOutputs::Arrival arrival;
  // On the CPU the scores are counted at once.
  if (!kept_) arrival = outputs_->bring(on_cpu() ? StepOutput{.loss = output.loss} : output);
  if (on_cpu()) {
    check_loss(batch, output, steps_ + 1);
    method_->confirm(steps_);
    add(numbers(batch, output, stop), step.numbers);
    if ((steps_ + 1) % steps_together_ == 0)
      step.sum = team_.start_sum(joined_numbers(issued_, step.numbers));  // in parallel to the backward pass
    else
      team_.check_job();  // a step that sends nothing does not notice that a rank was lost
  }
  if (!recorded) loss.backward();
  try {
    method_->step();
  } catch (const InputError&) {
    if (!on_cpu()) check_loss(batch, output, steps_ + 1);  // a message about the loss is more helpful
    throw;
  }
  if (average_) average_->update();
  const Tensor& norm = optimizer_->squared_gradient_norm();
  if (kept_) {
    kept_->keep({.loss = output.loss, .squared_norm = norm});
  } else {
    step.output = [arrival, norm_arrival = norms_->bring({.squared_norm = norm})] {
      StepOutput arrived = arrival();
      arrived.squared_norm = norm_arrival().squared_norm;
      return arrived;
    };
  }
  return step;
}

/// Issues a whole step by replaying the recorded graph.
Trainer::IssuedStep Trainer::replay(const DeviceBatch& batch, bool stop) {
  if (average_) average_->begin_update();
  const StepOutput& output = graph_->run(batch, static_cast<uint32_t>(steps_));
  IssuedStep step{.batch = batch, .stop = stop};
  if (!kept_) step.output = outputs_->bring(output);
  method_->end_step();
  return step;
}

/// The numbers that this rank adds to the sums of a step: its loss, whether the user stopped the rank, and, if scores
/// are counted, the two parts of each.
std::vector<double> Trainer::numbers(const DeviceBatch& batch, const StepOutput& output, bool stop) const {
  std::vector<double> numbers = {output.loss.item(), stop ? 1.0 : 0.0};
  if (!counts_scores_) return numbers;
  for (const Ratio& ratio : count_scores(*task_, output.outputs, batch.on_cpu()))
    numbers.insert(numbers.end(), {ratio.numerator, ratio.denominator});
  return numbers;
}

/// Whether all issued steps are finished before the next one. If not, the outputs of a group may arrive while the
/// device works on the next step. All ranks decide the same: that one of them stops, they learn from the sums of the
/// group, and then they finish the next step, too.
bool Trainer::finishes_now(bool stop) const {
  const bool stops = resources_.communicator ? interrupted_ : stop;
  if (stops || at_epoch_end() || evaluation_due() || ended() || checkpoint_due() || histograms_due(steps_)) return true;
  return ends_group() && (on_cpu() || settings_.accumulate > 1);
}

/// The sums over the ranks of the numbers of steps, one step after the other, in one message.
std::vector<double> Trainer::sum_up(const std::vector<IssuedStep>& steps,
                                    const std::vector<StepOutput>& outputs) const {
  if (steps.back().sum) return steps.back().sum->wait();
  if (on_cpu()) return team_.sum(joined_numbers(steps, {}));
  const DeviceBatch& batch = *steps.back().batch;  // scores need it; if they are counted, there is one step
  std::vector<double> all;
  bool finite = true;
  for (size_t i = 0; i < steps.size(); ++i) {
    // Not of this step, nor of one whose loss is not finite: that is the better message.
    if (finite) method_->confirm(steps[i].report.step - 1);
    finite = finite && std::isfinite(outputs[i].loss.item());
    std::vector<double> own = steps[i].numbers;
    add(numbers(batch, outputs[i], steps[i].stop), own);
    all.insert(all.end(), own.begin(), own.end());
  }
  return team_.sum(all);
}

/// The numbers of these steps, one step after the other, and those of the next.
std::vector<double> Trainer::joined_numbers(std::span<const IssuedStep> steps, std::span<const double> next) {
  std::vector<double> all;
  for (const IssuedStep& step : steps) all.insert(all.end(), step.numbers.begin(), step.numbers.end());
  all.insert(all.end(), next.begin(), next.end());
  return all;
}

/// Waits for the losses of all issued steps, and adds them up over the ranks. What the exchanges have taken since
/// `before` belongs to the last of these steps, too. If a step is wrong, the listeners still hear of those before it.
void Trainer::finish(const Spent& before) {
  const std::vector<IssuedStep> steps = std::exchange(issued_, {});
  try {
    std::vector<StepOutput> outputs;
    for (const IssuedStep& step : steps)
      if (step.output) outputs.push_back(step.output());
    if (kept_) outputs = kept_->wait();
    const std::vector<double> sums = sum_up(steps, outputs);
    const Spent after = spent();
    const size_t each = sums.size() / steps.size();
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool is_last = i + 1 == steps.size();
      // A gradient of another rank may have broken the loss. That rank gave no numbers then, and `sum` has said why.
      check_loss(*steps.back().batch, outputs[i], steps[i].report.step, is_last);
      StepReport report = report_of(steps[i], outputs[i], std::span(sums).subspan(i * each, each));
      if (is_last) {
        report.traffic = report.traffic + (after.traffic - before.traffic);
        report.times = report.times + (after.times - before.times);
      }
      finished_.push_back(report);
    }
  } catch (...) {
    tell();
    throw;
  }
}

/// The report of a step from its sums over the ranks.
StepReport Trainer::report_of(const IssuedStep& step, const StepOutput& output, std::span<const double> sums) {
  StepReport report = step.report;
  if (!std::isfinite(sums[0])) team_.barrier();  // it says which rank's loss is not finite
  report.loss = sums[0] / static_cast<double>(team_.size() * settings_.accumulate);
  interrupted_ = interrupted_ || sums[1] > 0;
  method_->confirm(report.step);
  team_.confirm();
  const Tensor& norm = output.squared_norm;
  // It is not finite if a gradient of another rank was not. That rank ends in its next step.
  if (norm.defined() && std::isfinite(norm.item())) report.gradient_norm = std::sqrt(norm.item());
  for (size_t i = 2; i < sums.size(); i += 2) report.scores.push_back(Ratio{sums[i], sums[i + 1]}.value());
  return report;
}

/// Waits until the device has done all steps, and throws if a gradient was not finite.
void Trainer::settle() const {
  if (!on_cpu()) device_backend(parse_device(settings_.device)).synchronize();
  method_->confirm(steps_);
}

/// Settles all ranks. If one throws, the others learn its cause before they find what its gradient has broken.
void Trainer::settle_together() const {
  settle();
  if (!on_cpu()) team_.barrier();
}

}  // namespace tern::trainer
