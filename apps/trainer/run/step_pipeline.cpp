#include "tern/trainer/run/step_pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/recipe.h"

namespace tern::trainer {
namespace {

/// The steps whose losses are read together. A GPU keeps only losses, not what --plot and --accumulate need, so there
/// it is up to the user.
int64_t steps_read_together(const TrainSettings& s) {
  const bool on_cpu = parse_device(s.device).type == DeviceType::cpu;
  return s.log_every.value_or(s.workers && on_cpu ? steps_of_a_sum(s.method, s.local_steps) : 1);
}

/// Adds `numbers` to `sums`, which may be empty.
void add(const std::vector<double>& numbers, std::vector<double>& sums) {
  sums.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
}

}  // namespace

StepPipeline::StepPipeline(StepParts parts)
    : parts_(std::move(parts)),
      team_(parts_.communicator),
      on_cpu_(parse_device(parts_.settings.device).type == DeviceType::cpu),
      // Ranks that differ in --plot must still add up the same numbers. None has it with --log-every above 1.
      counts_scores_(!parts_.settings.plot.empty() ||
                     (parts_.communicator != nullptr && parts_.settings.log_every.value_or(1) == 1)),
      steps_together_(steps_read_together(parts_.settings)),
      outputs_(parse_device(parts_.settings.device)),
      norms_(parse_device(parts_.settings.device)) {
  const Device device = parse_device(parts_.settings.device);
  if (steps_together_ > 1 && !on_cpu_) kept_ = std::make_unique<KeptOutputs>(device, steps_together_);
  if (parts_.settings.cuda_graph && acts(parts_.settings, &TrainSettings::cuda_graph)) record_steps(device);
}

/// Makes the graph: of a whole step if the rank is alone or its exchange can be recorded, else of what comes before the
/// exchange. All ranks replay an exchange together, so the shapes of their batches must not differ.
void StepPipeline::record_steps(Device device) {
  const auto fields = parts_.training.fields();
  const bool batches_differ = std::ranges::any_of(fields, [](const Field& f) { return f.kind != FieldKind::dense; });
  records_whole_steps_ = parts_.communicator == nullptr || (parts_.method.can_be_recorded() && !batches_differ);
  graph_ = std::make_unique<StepGraph>(
      parts_.model,
      [this, one = Tensor::full({}, 1).to(device)](const DeviceBatch& batch) {
        const Forward pass = forward(batch);
        pass.loss.backward(one.reshape(pass.loss.shape()));  // made once, not in each step
        if (!records_whole_steps_) return StepOutput{pass.loss.value(), scored(pass)};
        parts_.method.issue_step();
        if (parts_.average) parts_.average->issue_update();
        const StepOutput output{pass.loss.value(), scored(pass), parts_.optimizer.squared_gradient_norm()};
        if (!kept_) return output;
        kept_->keep(output);
        return StepOutput{};
      },
      records_whole_steps_ ? StepGraph::Gradients::dropped : StepGraph::Gradients::kept,
      [this](bool recorded) { return !records_whole_steps_ || team_.sum({recorded ? 0.0 : 1.0}).front() == 0; });
}

void StepPipeline::train(const StepPlan& plan) {
  plan_ = plan;
  try {
    train_next();
  } catch (const InputError&) {
    // A rank that trains alone finishes the steps before. If one of them diverged, that is the better message.
    if (!parts_.communicator && !issued_.empty()) {
      if (kept_) kept_->bring(issued_.size());
      finish(spent());
    }
    throw;
  }
}

void StepPipeline::train_next() {
  const OperationTiming timing(parts_.clock);
  const Spent at_begin = spent();
  if (parts_.clock) parts_.clock->begin("next_batch");
  auto batch = parts_.feed.next();
  parts_.method.begin_step(steps_before());
  parts_.optimizer.zero_gradients();
  const bool stop = parts_.interrupt.interrupted();
  std::vector<double> before;
  for (int64_t i = 1; i < parts_.settings.accumulate; ++i) {
    add(accumulate(*batch, stop), before);
    parts_.feed.prefetch();
    batch = parts_.feed.next();
  }
  const bool recorded = runs_as_graph(*batch);
  Issued step =
      recorded && records_whole_steps_ ? replay(*batch, stop) : issue(*batch, stop, std::move(before), recorded);
  const Spent at_end = spent();
  // First the steps before: if a loss is not finite, the message reads their last batch, whose memory the prefetch
  // takes.
  const bool finishes_before = !issued_.empty() && ends_group(steps_before());
  if (finishes_before) finish(at_end);
  parts_.feed.prefetch();
  step.report = {.step = plan_.step,
                 .epoch = plan_.epoch,
                 .lr = plan_.lr,
                 .traffic = at_end.traffic - at_begin.traffic,
                 .times = at_end.times - at_begin.times};
  if (!issued_.empty()) issued_.back().batch.reset();
  issued_.push_back(std::move(step));
  const bool now = finishes_now(stop);
  if (kept_ && (now || ends_group(plan_.step))) kept_->bring(issued_.size());
  if (now) finish(finishes_before ? spent() : at_end);
  if (parts_.clock) parts_.clock->begin(nullptr);
}

void StepPipeline::set_seconds(double seconds) {
  (issued_.empty() ? finished_.back() : issued_.back().report).seconds = seconds;
}

std::vector<StepReport> StepPipeline::take_finished() { return std::exchange(finished_, {}); }

bool StepPipeline::runs_as_graph(const DeviceBatch& batch) {
  if (!graph_ || plan_.keeps_gradients) return false;  // a replay of a whole step keeps no gradients
  parts_.optimizer.begin_step();                       // a recording must not have the rates of its own step
  try {
    return graph_->takes(batch);
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    graph_.reset();
    if (records_whole_steps_) parts_.method.begin_step(steps_before());  // the recording has begun the exchange
    parts_.noted(join({"steps run operation by operation, since none could be recorded: ", error.what()}));
    return false;
  }
}

Forward StepPipeline::forward(const DeviceBatch& batch) {
  parts_.model.begin_step({.seed = static_cast<uint64_t>(parts_.settings.seed),
                           .step = static_cast<uint32_t>(steps_before()),
                           .samples = batch.indices()});
  return forward_pass(parts_.task, parts_.model, batch);
}

/// What the scores of a training step are counted from; nothing if nobody sees them.
std::vector<Tensor> StepPipeline::scored(const Forward& pass) const {
  return counts_scores_ ? pass.values() : std::vector<Tensor>();
}

/// A batch before the last of a step: adds its part of the mean to the gradients. Returns its numbers.
std::vector<double> StepPipeline::accumulate(const DeviceBatch& batch, bool stop) {
  const Forward pass = forward(batch);
  const auto arrival = outputs_.bring({pass.loss.value(), scored(pass)});
  part_of_mean(pass.loss).backward();
  const StepOutput output = arrival();
  check_loss(batch, output, plan_.step);
  parts_.method.confirm(steps_before());
  return numbers(batch, output, stop);
}

void StepPipeline::check_loss(const DeviceBatch& batch, const StepOutput& output, int64_t step,
                              bool is_of_batch) const {
  check_finite(output.loss.item(), join({"at step ", step}), parts_.model, parts_.task, batch, is_of_batch);
}

/// The loss of a batch as a part of the mean loss of its step.
Variable StepPipeline::part_of_mean(const Variable& loss) const {
  return parts_.settings.accumulate == 1 ? loss : scale(loss, 1 / static_cast<double>(parts_.settings.accumulate));
}

/// Issues a step operation by operation, or its last batch. `before` are the numbers of the batches before. If it is
/// `recorded`, forward and backward are a replay.
StepPipeline::Issued StepPipeline::issue(const DeviceBatch& batch, bool stop, std::vector<double> before,
                                         bool recorded) {
  Variable loss;
  StepOutput output;
  if (recorded) {
    output = graph_->run(batch, static_cast<uint32_t>(steps_before()));
  } else {
    const Forward pass = forward(batch);
    loss = part_of_mean(pass.loss);
    output = {pass.loss.value(), scored(pass)};
  }
  Issued step{.batch = batch, .stop = stop, .numbers = std::move(before)};
  StepOutputs::Arrival arrival;
  // On the CPU the scores are counted at once.
  if (!kept_) arrival = outputs_.bring(on_cpu_ ? StepOutput{.loss = output.loss} : output);
  if (on_cpu_) {
    check_loss(batch, output, plan_.step);
    parts_.method.confirm(steps_before());
    add(numbers(batch, output, stop), step.numbers);
    if (ends_group(plan_.step))
      step.sum = team_.start_sum(joined_numbers(issued_, step.numbers));  // in parallel to the backward pass
    else
      team_.check_job();  // a step that sends nothing does not notice that a rank was lost
  }
  if (!recorded) loss.backward();
  try {
    parts_.method.step();
  } catch (const InputError&) {
    if (!on_cpu_) check_loss(batch, output, plan_.step);  // a message about the loss is more helpful
    throw;
  }
  if (parts_.average) parts_.average->update();
  const Tensor& norm = parts_.optimizer.squared_gradient_norm();
  if (kept_) {
    kept_->keep({.loss = output.loss, .squared_norm = norm});
  } else {
    step.output = [arrival, norm_arrival = norms_.bring({.squared_norm = norm})] {
      StepOutput arrived = arrival();
      arrived.squared_norm = norm_arrival().squared_norm;
      return arrived;
    };
  }
  return step;
}

/// Issues a whole step by replaying the recorded graph.
StepPipeline::Issued StepPipeline::replay(const DeviceBatch& batch, bool stop) {
  if (parts_.average) parts_.average->begin_update();
  const StepOutput& output = graph_->run(batch, static_cast<uint32_t>(steps_before()));
  Issued step{.batch = batch, .stop = stop};
  if (!kept_) step.output = outputs_.bring(output);
  parts_.method.end_step();
  return step;
}

/// The numbers that this rank adds to the sums of a step: its loss, whether the user stopped the rank, and, if scores
/// are counted, the two parts of each.
std::vector<double> StepPipeline::numbers(const DeviceBatch& batch, const StepOutput& output, bool stop) const {
  std::vector<double> numbers = {output.loss.item(), stop ? 1.0 : 0.0};
  if (!counts_scores_) return numbers;
  for (const Ratio& ratio : count_scores(parts_.task, output.outputs, batch.on_cpu()))
    numbers.insert(numbers.end(), {ratio.numerator, ratio.denominator});
  return numbers;
}

/// Whether all issued steps are finished before the next one. If not, the outputs of a group may arrive while the
/// device works on the next step. All ranks decide the same: that one of them stops, they learn from the sums of the
/// group, and then they finish the next step, too.
bool StepPipeline::finishes_now(bool stop) const {
  const bool stops = parts_.communicator ? interrupted_ : stop;
  if (stops || plan_.finishes_all) return true;
  return ends_group(plan_.step) && (on_cpu_ || parts_.settings.accumulate > 1);
}

/// The sums over the ranks of the numbers of steps, one step after the other, in one message.
std::vector<double> StepPipeline::sum_up(const std::vector<Issued>& steps,
                                         const std::vector<StepOutput>& outputs) const {
  if (steps.back().sum) return steps.back().sum->wait();
  if (on_cpu_) return team_.sum(joined_numbers(steps, {}));
  const DeviceBatch& batch = *steps.back().batch;  // scores need it; if they are counted, there is one step
  std::vector<double> all;
  bool finite = true;
  for (size_t i = 0; i < steps.size(); ++i) {
    // Not of this step, nor of one whose loss is not finite: that is the better message.
    if (finite) parts_.method.confirm(steps[i].report.step - 1);
    finite = finite && std::isfinite(outputs[i].loss.item());
    std::vector<double> own = steps[i].numbers;
    add(numbers(batch, outputs[i], steps[i].stop), own);
    all.insert(all.end(), own.begin(), own.end());
  }
  return team_.sum(all);
}

/// The numbers of these steps, one step after the other, and those of the next.
std::vector<double> StepPipeline::joined_numbers(std::span<const Issued> steps, std::span<const double> next) {
  std::vector<double> all;
  for (const Issued& step : steps) all.insert(all.end(), step.numbers.begin(), step.numbers.end());
  all.insert(all.end(), next.begin(), next.end());
  return all;
}

/// Waits for the losses of all issued steps, and adds them up over the ranks. What the exchanges have taken since
/// `before` belongs to the last of these steps, too. If a step is wrong, `take_finished` still gives those before it.
void StepPipeline::finish(const Spent& before) {
  const std::vector<Issued> steps = std::exchange(issued_, {});
  std::vector<StepOutput> outputs;
  for (const Issued& step : steps)
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
}

/// The report of a step from its sums over the ranks.
StepReport StepPipeline::report_of(const Issued& step, const StepOutput& output, std::span<const double> sums) {
  StepReport report = step.report;
  if (!std::isfinite(sums[0])) team_.barrier();  // it says which rank's loss is not finite
  report.loss = sums[0] / static_cast<double>(team_.size() * parts_.settings.accumulate);
  interrupted_ = interrupted_ || sums[1] > 0;
  parts_.method.confirm(report.step);
  team_.confirm();
  const Tensor& norm = output.squared_norm;
  // It is not finite if a gradient of another rank was not. That rank ends in its next step.
  if (norm.defined() && std::isfinite(norm.item())) report.gradient_norm = std::sqrt(norm.item());
  for (size_t i = 2; i < sums.size(); i += 2) report.scores.push_back(Ratio{sums[i], sums[i + 1]}.value());
  return report;
}

}  // namespace tern::trainer
