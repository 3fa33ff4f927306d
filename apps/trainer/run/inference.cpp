#include "tern/trainer/run/inference.h"

#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/rank/interrupt.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/recipe.h"

namespace tern::trainer {
namespace {

std::unique_ptr<Module> finished_model(const Application& application, const TrainSettings& settings,
                                       const Dataset* data) {
  auto model = make_model(application, settings, data);
  if (settings.resume) load_evaluated_model(settings.checkpoint, *model);
  model->set_training(false);
  return model;
}

}  // namespace

void evaluate_only(const Application& application, const TrainSettings& settings, LineWriter& out) {
  const InterruptGuard interrupt;
  const auto test = load_split(settings, Split::test);
  const auto model = finished_model(application, settings, test.get());
  const auto loader = make_test_loader(settings, *test, Team(nullptr));
  const auto task = task_of(settings);
  const auto listeners = make_listeners(settings, out);
  for (const auto& listener : listeners)
    listener->started({.application = application.name,
                       .settings = settings,
                       .scores = task->scores(),
                       .noun = task->sample_noun(),
                       .test_samples = test->size(),
                       .parameters = model->parameter_count(),
                       .samples_per_step = 0});
  const auto found = evaluate(*model, *task, *loader, {.dtype = activation_dtype(settings)}, "in the evaluation",
                              [&interrupt] { return interrupt.interrupted(); });
  if (!found) throw Interrupted("interrupted during the evaluation");
  UnreadNotes(listeners).tell_of(*test, Team(nullptr), task->sample_noun());
  for (const auto& listener : listeners) {
    listener->evaluated({.scores = found->values(), .loss = found->loss()});
    listener->ended({.scores = found->values(), .loss = found->loss(), .peak_memory = peak_memory_bytes()});
  }
}

void predict(const Application& application, const TrainSettings& settings) {
  const auto data = needs_data_to_describe(settings) ? load_split(settings, Split::test) : nullptr;
  const auto model = finished_model(application, settings, data.get());
  task_of(settings)->predict(*model, settings, print_plainly);
}

}  // namespace tern::trainer
