#include "tern/apps/trainer/trainer.h"

#include <chrono>

#include "tern/apps/trainer/datasets.h"
#include "tern/apps/trainer/diagnosis.h"
#include "tern/apps/trainer/listeners.h"
#include "tern/apps/trainer/loaders.h"
#include "tern/apps/trainer/machine.h"
#include "tern/apps/trainer/model_setup.h"
#include "tern/apps/trainer/recipe.h"
#include "tern/autograd/loss.h"
#include "tern/core/error.h"
#include "tern/core/safetensors.h"

namespace tern {

Trainer::Trainer(const Application& application, const TrainSettings& settings)
    : settings_(settings), name_(application.name), model_(make_model(application, settings)) {
  const DatasetEntry& entry = find_dataset(settings.data);
  training_ = entry.load(settings, Split::train);
  test_ = entry.load(settings, Split::test);
  loader_ = make_training_loader(settings, *training_);
  test_loader_ = make_test_loader(settings, *test_);
  if (!settings_.iterations && !settings_.epochs) settings_.epochs = 1;
  total_steps_ = settings_.iterations ? *settings_.iterations : *settings_.epochs * loader_->batches();
  optimizer_ = make_optimizer(settings, *model_);
  if (settings.ema_decay > 0) average_ = std::make_unique<ParameterAverage>(model_->parameters(), settings.ema_decay);
  schedule_ = make_schedule(settings, total_steps_);
  if (settings.resume) restore();
}

RunParts Trainer::parts() { return {.model = *model_, .optimizer = *optimizer_, .average = average_.get()}; }

void Trainer::restore() {
  const RunPlace place = read_run(settings_.checkpoint, describe(), parts());
  steps_ = first_step_ = place.steps;
  seconds_ = first_seconds_ = place.seconds;
}

void Trainer::write_checkpoint() {
  if (settings_.checkpoint.empty()) return;
  check_finite_state(*model_, steps_);
  write_run(settings_.checkpoint, describe(), {.steps = steps_, .seconds = seconds_}, parts());
}

void Trainer::train() {
  listeners_ = make_listeners(settings_);
  for (const auto& listener : listeners_) listener->started(describe());
  if (!at_epoch_end()) start_loader();
  while (true) {
    // The next batches are prepared while the model is evaluated.
    if (at_epoch_end()) start_loader();
    // A run that was stopped at this step, before or in its evaluation, is resumed here.
    if (at_epoch_end() || ended()) evaluate_model();
    if (ended()) break;
    train_step();
    const bool stop = interrupt_.interrupted();
    // The last one waits for the evaluation, which finds out whether the last update diverged.
    if (stop || (checkpoint_due() && !ended())) write_checkpoint();
    if (stop) throw Interrupted(join({"interrupted after step ", steps_, what_is_kept()}));
  }
  if (steps_ > first_step_) write_checkpoint();
  save_model();
  for (const auto& listener : listeners_) listener->ended(report());
}

void Trainer::start_loader() {
  if (!ended()) loader_->start({.epoch = epochs_done(), .batch = steps_ % loader_->batches()});
}

void Trainer::train_step() {
  const auto begin = std::chrono::steady_clock::now();
  const auto batch = loader_->next();
  const double lr = schedule_(steps_);
  const Variable x(batch->images.to(activation_dtype(settings_)));
  model_->begin_step({.seed = static_cast<uint64_t>(settings_.seed),
                      .step = static_cast<uint32_t>(steps_),
                      .samples = batch->indices});
  optimizer_->zero_gradients();
  const Variable logits = (*model_)(x);
  const Variable loss = cross_entropy(logits, batch->labels, settings_.label_smoothing);
  const double value = loss.value().item();
  check_finite(value, join({"at step ", steps_ + 1}), *model_, x);
  loss.backward();
  optimizer_->set_learning_rate(lr);
  optimizer_->step();
  if (average_) average_->update();
  ++steps_;
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double accuracy =
      static_cast<double>(count_correct(logits.value(), batch->labels)) / static_cast<double>(batch->size());
  const int64_t epoch = (steps_ - 1) / loader_->batches() + 1;
  for (const auto& listener : listeners_) listener->stepped({steps_, epoch, value, lr, seconds_, accuracy});
}

void Trainer::evaluate_model() {
  if (average_) average_->swap();
  const auto found = evaluate(*model_, *test_loader_, activation_dtype(settings_), join({"after step ", steps_}),
                              [this] { return interrupt_.interrupted(); });
  if (average_) average_->swap();
  if (!found) {
    write_checkpoint();
    throw Interrupted(join({"interrupted after step ", steps_, ", during the evaluation", what_is_kept()}));
  }
  evaluation_ = *found;
  const int64_t epoch = steps_ == 0 ? 0 : (steps_ - 1) / loader_->batches() + 1;
  for (const auto& listener : listeners_) listener->evaluated({steps_, epoch, found->accuracy, found->loss});
}

std::string Trainer::what_is_kept() const {
  if (settings_.checkpoint.empty()) return "; nothing is kept without --checkpoint DIR";
  return "; --checkpoint " + settings_.checkpoint + " --resume goes on from here";
}

bool Trainer::checkpoint_due() const {
  return settings_.checkpoint_every > 0 ? steps_ % settings_.checkpoint_every == 0 : at_epoch_end();
}

void Trainer::save_model() {
  if (settings_.save.empty()) return;
  if (average_) average_->swap();
  check_finite_state(*model_, steps_);
  write_safetensors(settings_.save, model_->state());
  if (average_) average_->swap();
}

RunStart Trainer::describe() const {
  return {.application = name_,
          .settings = settings_,
          .training_images = training_->size(),
          .test_images = test_->size(),
          .steps_per_epoch = loader_->batches(),
          .total_steps = total_steps_,
          .first_step = first_step_,
          .parameters = model_->parameter_count()};
}

RunReport Trainer::report() const {
  const double seconds = seconds_ - first_seconds_;
  const auto images = static_cast<double>((steps_ - first_step_) * settings_.batch_size);
  return {.accuracy = evaluation_.accuracy,
          .loss = evaluation_.loss,
          .seconds = seconds_,
          .steps = steps_,
          .images_per_second = seconds > 0 ? images / seconds : 0,
          .data_wait = seconds > 0 ? loader_->wait_seconds() / seconds : 0,
          .peak_memory = peak_memory_bytes()};
}

}  // namespace tern
