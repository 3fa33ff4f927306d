#include "tern/trainer/run/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tern/core/error.h"
#include "tern/core/safetensors.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/normalization.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/rank/flight.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/memory.h"
#include "tern/trainer/run/recipe.h"
#include "tern/trainer/run/shards.h"

namespace tern::trainer {
namespace {

/// Number of training batches for the batch-norm statistics before an evaluation. 0: keep the statistics from training.
int64_t calibration_batches(const TrainSettings& s) {
  constexpr int64_t kOfSubnets = 20;
  if (s.method != TrainingMethod::ist) return s.calibrate_batches.value_or(0);
  return s.ist_eval == SubnetEvaluation::calibrated ? s.calibrate_batches.value_or(kOfSubnets) : 0;
}

/// Whether an evaluation reads statistics that training batches set.
bool has_running_statistics(Module& model) {
  return std::ranges::any_of(model.modules(), [](const auto& named) {
    const auto* norm = dynamic_cast<const BatchNorm*>(named.module);
    return norm != nullptr && norm->running_mean != nullptr;
  });
}

/// A note if subnets cut a layer that has no normalisation (IST, section 3.3); otherwise empty.
std::string note_of_normalization(Module& model, SubnetScope scope) {
  const auto* cut = dynamic_cast<const SubnetModel*>(&model);
  if (cut == nullptr) return {};
  std::set<std::string> norms;
  for (const auto& [name, module] : model.modules())
    if (dynamic_cast<const BatchNorm*>(module) || dynamic_cast<const LayerNorm*>(module)) norms.insert(name);
  for (const auto& [layer, indices] : cut->subnet_plan(scope).layers)
    if (std::ranges::none_of(indices, [&](const NeuronIndex& index) {
          return norms.contains(index.tensor.substr(0, index.tensor.rfind('.')));
        }))
      return join(
          {"--method ist cuts '", layer,
           "', which has no batch or layer normalisation. The input of the layer behind it changes when subnets "
           "are joined, so the whole model may be no better than one subnet (IST, section 3.3)"});
  return {};
}

/// "--init-partial took 2 tensors: a, b; left of the file: none; not in the file: c"
std::string describe_copy(const PartialCopy& copied) {
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  };
  return fmt::format("--init-partial took {} tensors: {}; left of the file: {}; not in the file: {}",
                     copied.taken.size(), list(copied.taken), list(copied.left), list(copied.missing));
}

}  // namespace

Trainer::Trainer(const Application& application, const TrainSettings& settings, const RankResources& resources)
    : settings_(settings),
      name_(application.name),
      resources_(resources),
      team_(resources.communicator),
      task_(task_of(settings)),
      scores_(task_->scores()),
      model_(build_model(application, settings, resources.data.training.get())) {
  fill(application);
  const Device device = parse_device(settings.device);
  const Dataset& training = *resources_.data.training;
  const DType activations = activation_dtype(settings);
  images_ = DeviceImages::make(training, transform_for(settings, training), device,
                               image_channel_multiple(*model_, activations));
  loader_ = images_ ? make_training_loader(settings, training, team_, images_->needed(), images_->labels())
                    : make_training_loader(settings, training, team_);
  feed_ = std::make_unique<BatchFeed>(*loader_, device, activations, images_.get());
  test_loader_ = make_test_loader(settings, *resources_.data.test, cuts_ ? Team(nullptr) : team_);
  const bool has_statistics = has_running_statistics(*model_);
  check_input(!settings.calibrate_batches || has_statistics,
              "--calibrate-batches would change nothing: the model has no batch normalisation");
  if (resources_.communicator && has_statistics && calibration_batches(settings) > 0)
    calibration_loader_ = make_calibration_loader(settings, *resources_.data.training, team_);
  if (!settings_.iterations && !settings_.epochs) settings_.epochs = 1;
  check_input(steps_per_epoch() >= 1, "--accumulate: found ", settings.accumulate, ", expected at most ",
              loader_->batches(), ", the batches of an epoch");
  total_steps_ = settings_.iterations ? *settings_.iterations : *settings_.epochs * steps_per_epoch();
  optimizer_ = make_optimizer(settings, *model_);
  if (optimizer_->by_blocks() && updates_in_backward(settings, resources_.communicator != nullptr))
    optimizer_->update_in_backward();
  if (settings.ema_decay > 0) average_ = std::make_unique<ParameterAverage>(model_->parameters(), settings.ema_decay);
  schedule_ = make_schedule(settings, total_steps_);
  group_schedules_ = make_group_schedules(settings, *model_, total_steps_);
  if (settings.profile) clock_ = make_operation_clock(device);
  optimizer_->measure_gradient_norm(team_.leads() && (!settings.log.empty() || !settings.tensorboard.empty()));
  method_ = make_method(settings, *model_, *optimizer_, resources_.communicator, cuts_ ? &*cuts_ : nullptr);
  pipeline_ = std::make_unique<StepPipeline>(StepParts{.settings = settings_,
                                                       .task = *task_,
                                                       .training = training,
                                                       .model = *model_,
                                                       .optimizer = *optimizer_,
                                                       .method = *method_,
                                                       .average = average_.get(),
                                                       .feed = *feed_,
                                                       .communicator = resources_.communicator,
                                                       .interrupt = resources_.interrupt,
                                                       .clock = clock_.get(),
                                                       .noted = [this](const std::string& note) {
                                                         for (const auto& listener : listeners_) listener->noted(note);
                                                       }});
  if (team_.leads() && !settings.checkpoint.empty()) lock_.emplace(settings.checkpoint);
  if (settings.resume) restore();
  if (resources_.communicator) {
    Contract contract = run_contract(describe(), *model_, cuts_ ? &*cuts_ : nullptr);
    if (settings.resume) contract.emplace_back("run", run_);
    contract.emplace_back("exchange in the CUDA graph", pipeline_->records_exchange() ? "yes" : "no");
    compare_contracts(*resources_.communicator, contract);
  }
  if (!settings.checkpoint.empty() && run_.empty()) run_ = make_run_id(team_);
}

/// Gives the model, or this rank's slice of it, its first values.
void Trainer::fill(const Application& application) {
  if (is_sharded(settings_)) cuts_ = sharded_cuts(settings_, *model_);
  check_memory(settings_, *model_, cuts_ ? &*cuts_ : nullptr, team_.size(), memory_limit(resources_.here));
  team_.barrier();  // no rank takes memory before all have measured what is free
  if (cuts_)
    fill_slice(settings_, *model_, *cuts_, team_);
  else
    fill_model(settings_, *model_, &copied_, [&] {
      const Dataset& training = *resources_.data.training;
      if (application.prepare && !settings_.resume)
        application.prepare(*model_, training, transform_for(settings_, training));
    });
  const auto shapes = model_->whole_shapes();
  for (const auto& named : model_->trained_parameters())
    parameters_ += std::ranges::find(shapes, named.name, &NamedShape::name)->shape.numel();
}

RunParts Trainer::parts() {
  return {.model = *model_,
          .optimizer = *optimizer_,
          .method = *method_,
          .average = average_.get(),
          .cuts = cuts_ ? &*cuts_ : nullptr};
}

void Trainer::restore() {
  const RunPlace place = read_run(settings_.checkpoint, describe(), parts(), team_);
  run_ = place.run;
  steps_ = first_step_ = kept_step_ = place.steps;
  seconds_ = first_seconds_ = place.seconds;
  first_sent_ = {.sent_payload = place.sent_payload, .sent_overhead = place.sent_overhead};
}

void Trainer::write_checkpoint() {
  // Files of two writings do not match, and a rank may be lost between them. So do not write a step twice.
  if (settings_.checkpoint.empty() || steps_ == kept_step_) return;
  settle_together();
  gather_model();
  count_exchange(&DistributedOptimizer::bring_home);
  check_model();
  const Traffic sent = sent_in_all();
  const RunPlace place = {.run = run_,
                          .steps = steps_,
                          .seconds = seconds_,
                          .sent_payload = sent.sent_payload,
                          .sent_overhead = sent.sent_overhead,
                          .whole = kept_step_};
  for (const auto& listener : listeners_) listener->checkpointing();
  write_run(settings_.checkpoint, describe(), place, parts(), team_, resources_.pulse);
  kept_step_ = steps_;
}

void Trainer::train() {
  if (team_.leads()) listeners_ = make_listeners(settings_, resources_.out);
  std::vector<std::string> notes;
  if (settings_.init_partial) notes.push_back(describe_copy(copied_));
  if (team_.size() > 1) {
    notes.push_back(settings_.method == TrainingMethod::ist ? note_of_normalization(*model_, settings_.ist_scope)
                                                            : note_of_bytes(settings_, *model_, team_.size()));
    notes.push_back(note_of_rounds(settings_, total_steps_));
  }
  for (const auto& listener : listeners_) {
    listener->started(describe());
    for (const std::string& note : notes)
      if (!note.empty()) listener->noted(note);
  }
  if (resources_.flight) resources_.flight->begin();
  if (!at_epoch_end()) start_loader();
  while (true) {
    // The loader prepares the next batches during the evaluation.
    if (at_epoch_end()) start_loader();
    // A run that was stopped at this step, before or in its evaluation, resumes here.
    if (evaluation_due() || ended()) evaluate_model();
    if (ended()) break;
    train_step();
    // The last checkpoint waits for the evaluation, which detects whether the last update diverged.
    if (pipeline_->interrupted() || (checkpoint_due() && !ended())) write_checkpoint();
    if (pipeline_->interrupted()) throw Interrupted(join({"interrupted after step ", steps_, what_is_kept()}));
  }
  const RunReport whole = report();
  for (const auto& listener : listeners_) listener->ended(whole);
}

void Trainer::start_loader() {
  if (ended()) return;
  feed_->reset();
  loader_->start({.epoch = epochs_done(), .batch = steps_ % steps_per_epoch() * settings_.accumulate});
}

void Trainer::train_step() {
  const auto begin = std::chrono::steady_clock::now();
  const double lr = schedule_(steps_);
  optimizer_->set_learning_rate(lr);
  for (const auto& [group, schedule] : group_schedules_) optimizer_->set_learning_rate(group, schedule(steps_));
  ++steps_;
  const bool counts_values = settings_.histograms > 0 && steps_ % settings_.histograms == 0;
  try {
    pipeline_->train(
        {.step = steps_,
         .epoch = (steps_ - 1) / steps_per_epoch() + 1,
         .lr = lr,
         .finishes_all = counts_values || at_epoch_end() || evaluation_due() || ended() || checkpoint_due(),
         .keeps_gradients = counts_values});
  } catch (...) {
    tell();
    throw;
  }
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  resources_.pulse.beat();
  pipeline_->set_seconds(seconds_);
  tell();
  if (listeners_.empty() || !counts_values) return;
  const HistogramReport histograms = count_values();
  for (const auto& listener : listeners_) listener->counted(histograms);
}

/// Tells the listeners of the steps that have been finished.
void Trainer::tell() {
  std::vector<StepReport> reports = pipeline_->take_finished();
  for (StepReport& report : reports) {
    report.is_newest = &report == &reports.back();
    for (const auto& listener : listeners_) listener->stepped(report);
  }
}

/// The distributions of the model, from the end of a step until the gradients are set to zero.
HistogramReport Trainer::count_values() const {
  settle();
  HistogramReport report = {.step = steps_};
  for (const auto& [name, parameter] : model_->trained_parameters()) {
    report.weights.emplace(name, make_histogram(parameter->value()));
    if (const Tensor& gradient = parameter->gradient(); gradient.defined())
      report.gradients.emplace(name, make_histogram(gradient));
  }
  team_.confirm();
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

/// Calls a function of the method outside of a step. What the method counts as time of exchanges is time of training.
void Trainer::count_exchange(void (DistributedOptimizer::*function)()) {
  const double before = method_->times().total();
  (*method_.*function)();
  seconds_ += method_->times().total() - before;
}

/// Makes the whole model available on every rank, or on all ranks together, for evaluation and saving.
void Trainer::gather_model() {
  count_exchange(&DistributedOptimizer::consolidate);
  resources_.pulse.beat();
  if (!calibration_loader_) return;
  const Pulse::Work calibrating(resources_.pulse);
  TrainSettings plain = settings_;
  plain.tta = TestViews::none;  // each batch counts once
  calibrate(*model_, *task_of(plain), *calibration_loader_, activation_dtype(settings_),
            calibration_batches(settings_));
}

/// Each rank evaluates its share of the test samples, or all ranks together evaluate all of them.
void Trainer::evaluate_model() {
  settle_together();
  gather_model();
  const auto stopped = [this] {
    const bool here = resources_.interrupt.interrupted();
    return cuts_ ? team_.sum({here ? 1.0 : 0.0}).front() > 0 : here;  // together, they stop at the same batch
  };
  if (average_) average_->swap();
  const auto own = evaluate(
      *model_, *task_, *test_loader_,
      {.dtype = activation_dtype(settings_),
       .batch_statistics = settings_.method == TrainingMethod::ist && settings_.ist_eval == SubnetEvaluation::batch},
      join({"after step ", steps_}), stopped);
  if (average_) average_->swap();
  const Evaluation none = {.scores = std::vector<Ratio>(scores_.size())};
  const Evaluation share = own && (!cuts_ || team_.leads()) ? *own : none;
  const size_t unread = resources_.data.training->unread().size() + resources_.data.test->unread().size();
  std::vector<double> numbers = {static_cast<double>(share.samples), share.loss_sum, own ? 0.0 : 1.0,
                                 static_cast<double>(unread)};
  for (const Ratio& score : share.scores) numbers.insert(numbers.end(), {score.numerator, score.denominator});
  const std::vector<double> sums = team_.sum(numbers);
  team_.confirm();
  if (sums[2] > 0) {
    write_checkpoint();
    throw Interrupted(join({"interrupted after step ", steps_, ", during the evaluation", what_is_kept()}));
  }
  check_input(sums[0] > 0, "--ist-eval batch: found one test sample in each batch, expected 2 or more");
  evaluation_ = {.samples = static_cast<int64_t>(sums[0]), .loss_sum = sums[1]};
  for (size_t i = 4; i < sums.size(); i += 2) evaluation_.scores.push_back({sums[i], sums[i + 1]});
  reached_ = reaches_target();
  std::exception_ptr unsaved;
  if (ended()) unsaved = save_at_end();  // before the listeners hear of it, because they may fail
  const int64_t epoch = steps_ == 0 ? 0 : (steps_ - 1) / steps_per_epoch() + 1;
  try {
    for (const auto& listener : listeners_)
      listener->evaluated({steps_, epoch, evaluation_.values(), evaluation_.loss()});
  } catch (const std::exception&) {
    if (!unsaved) throw;
  }
  if (unsaved) std::rethrow_exception(unsaved);
  if (sums[3] == 0) return;
  unread_notes_.tell_of(*resources_.data.training, team_, task_->sample_noun());
  unread_notes_.tell_of(*resources_.data.test, team_, task_->sample_noun());
}

/// Returns the first error, which says what to mend; null if there was none.
std::exception_ptr Trainer::save_at_end() {
  std::exception_ptr error;
  try {
    if (steps_ > 0) write_checkpoint();
  } catch (const InputError&) {
    error = std::current_exception();
    if (cuts_) return error;
  }
  try {  // a full disk may have room for the model, which is smaller than a checkpoint
    save_model();
  } catch (const InputError& failed) {
    if (!error) error = std::make_exception_ptr(InputError(join({"--save: ", failed.what(), what_is_kept()})));
  }
  return error;
}

bool Trainer::reaches_target() const {
  if (!settings_.target_score || steps_ == 0) return false;
  return scores_.front().reaches(evaluation_.values().front(), *settings_.target_score);
}

std::string Trainer::what_is_kept() const {
  if (settings_.checkpoint.empty()) return "; nothing is kept without --checkpoint DIR";
  return "; --checkpoint " + settings_.checkpoint + " --resume goes on from here";
}

bool Trainer::checkpoint_due() const {
  return settings_.checkpoint_every > 0 ? steps_ % settings_.checkpoint_every == 0 : at_epoch_end();
}

/// Throws if the model diverged, or if an exchange that changed it has failed. It reads the whole model, so no exchange
/// that changes it is under way when it returns.
void Trainer::check_model() const {
  settle();
  check_finite_state(*model_, steps_);
  team_.confirm();
}

void Trainer::save_model() {
  if (settings_.save.empty()) return;
  if (cuts_) {
    count_exchange(&DistributedOptimizer::bring_home);
    check_model();
    const Pulse::Work writing(resources_.pulse);
    return write_shards(settings_.save, *model_, *cuts_, team_);
  }
  if (!team_.leads()) return;
  if (average_) average_->swap();
  check_model();
  const Pulse::Work writing(resources_.pulse);
  write_safetensors(settings_.save, model_->state());
  if (average_) average_->swap();
}

RunStart Trainer::describe() const {
  return {.application = name_,
          .settings = settings_,
          .scores = scores_,
          .noun = task_->sample_noun(),
          .training_samples = resources_.data.training->size(),
          .test_samples = resources_.data.test->size(),
          .steps_per_epoch = steps_per_epoch(),
          .total_steps = total_steps_,
          .first_step = first_step_,
          .parameters = parameters_,
          .samples_per_step = samples_per_rank(settings_, team_.size()) * team_.size() * settings_.accumulate,
          .launcher = resources_.launcher,
          .data_fingerprint = resources_.data.fingerprint};
}

RunReport Trainer::report() {
  const double seconds = seconds_ - first_seconds_;
  const auto samples = static_cast<double>((steps_ - first_step_) * describe().samples_per_step);
  RunReport whole = {.scores = evaluation_.values(),
                     .loss = evaluation_.loss(),
                     .seconds = seconds_,
                     .steps = steps_,
                     .reached_target = reached_,
                     .samples_per_second = seconds > 0 ? samples / seconds : 0,
                     .data_wait = seconds > 0 ? loader_->wait_seconds() / seconds : 0,
                     .peak_memory = peak_memory_bytes()};
  if (const Device device = parse_device(settings_.device); device.type != DeviceType::cpu)
    whole.peak_device_memory = device_backend(device).statistics().peak_in_use;
  if (clock_) whole.operations = clock_->times();
  if (resources_.communicator) whole.team = report_team(seconds);
  return whole;
}

Traffic Trainer::sent_in_all() const {
  const Traffic now = team_.traffic();
  return {.sent_payload = first_sent_.sent_payload + now.sent_payload,
          .sent_overhead = first_sent_.sent_overhead + now.sent_overhead};
}

TeamReport Trainer::report_team(double seconds) const {
  TeamReport report = {.traffic = sent_in_all(), .times = method_->times()};
  const auto ranks = static_cast<double>(team_.size()), steps = static_cast<double>(steps_);
  const auto payload = static_cast<double>(report.traffic.sent_payload);
  const auto overhead = static_cast<double>(report.traffic.sent_overhead);
  const std::vector<double> sent = team_.sum({payload, overhead});
  if (steps > 0) {
    report.sent_payload_mean = sent[0] / ranks / steps;
    report.sent_overhead_mean = sent[1] / ranks / steps;
  }
  report.float_ring_bytes = 8 * static_cast<double>(parameters_) * (ranks - 1) / ranks;
  if (payload + overhead > 0) report.float_ring_ratio = steps * report.float_ring_bytes / (payload + overhead);
  report.compute = seconds - report.times.total();
  report.peak_memory = static_cast<int64_t>(team_.largest(static_cast<double>(peak_memory_bytes())));
  return report;
}

}  // namespace tern::trainer
