#include "tern/trainer/run/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tern/autograd/layout.h"
#include "tern/autograd/softmax.h"
#include "tern/core/error.h"
#include "tern/data/image_decoder.h"
#include "tern/trainer/job/machine.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/datasets.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/interrupt.h"
#include "tern/trainer/run/recipe.h"

namespace tern::trainer {
namespace {

constexpr size_t kShownClasses = 3;

std::unique_ptr<Module> finished_model(const Application& application, const TrainSettings& settings) {
  auto model = make_model(application, settings);
  if (settings.resume) load_evaluated_model(settings.checkpoint, *model);
  model->set_training(false);
  return model;
}

/// One batch with one example per picture.
Tensor batch_of(const std::vector<Image>& images, const DatasetEntry& entry, const Transform& transform) {
  const ImageSpec spec = transform.output(entry.spec);
  Tensor batch = Tensor::empty({static_cast<int64_t>(images.size()), spec.channels, spec.height, spec.width},
                               {.format = MemoryFormat::channels_last});
  auto place = batch.span<float>();
  for (const Image& image : images) {
    const auto pixels = entry.adapt(image, entry.spec);
    const auto size = static_cast<size_t>(spec.numel());
    transform.apply(entry.spec, transform.draw(entry.spec, 0, 0, 0), pixels, place.first(size));
    place = place.subspan(size);
  }
  return batch;
}

/// "photo.png: 7 (99.31 %), 1 (0.52 %), 9 (0.10 %)"
std::string answer(const std::string& path, std::span<const float> probabilities,
                   const std::vector<std::string>& classes) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  std::string text = path + ": ";
  for (size_t i = 0; i < std::min(order.size(), kShownClasses); ++i)
    text += fmt::format("{}{} ({:.2f} %)", i == 0 ? "" : ", ",
                        order[i] < classes.size() ? classes[order[i]] : std::to_string(order[i]),
                        100 * probabilities[order[i]]);
  return text;
}

}  // namespace

void evaluate_only(const Application& application, const TrainSettings& settings, LineWriter& out) {
  const InterruptGuard interrupt;
  const auto model = finished_model(application, settings);
  const auto test = load_test_data(settings);
  const auto loader = make_test_loader(settings, *test, Team(nullptr));
  const auto listeners = make_listeners(settings, out);
  for (const auto& listener : listeners)
    listener->started({.application = application.name,
                       .settings = settings,
                       .test_images = test->size(),
                       .parameters = model->parameter_count(),
                       .images_per_step = 0});
  const auto found = evaluate(*model, *loader, {.dtype = activation_dtype(settings)}, "in the evaluation",
                              [&interrupt] { return interrupt.interrupted(); });
  if (!found) throw Interrupted("interrupted during the evaluation");
  UnreadNotes(listeners).tell_of(*test, Team(nullptr));
  for (const auto& listener : listeners) {
    listener->evaluated({.accuracy = found->accuracy(), .loss = found->loss()});
    listener->ended({.accuracy = found->accuracy(), .loss = found->loss(), .peak_memory = peak_memory_bytes()});
  }
}

void predict(const Application& application, const TrainSettings& settings) {
  std::vector<Image> images;
  const DatasetEntry entry = describe_dataset(settings);
  for (const auto& path : settings.predict) images.push_back(read_image(path, static_cast<int>(entry.spec.channels)));
  const auto model = finished_model(application, settings);
  const NoGradient no_gradient;
  const Transform transform = training_transform(settings, entry.spec).for_evaluation();
  const Tensor batch = batch_of(images, entry, transform).to(parse_device(settings.device));
  const Variable logits = (*model)(convert(Variable(batch), activation_dtype(settings)));
  const Tensor probabilities = softmax(convert(logits, DType::f32)).value().to(Device{});
  const auto classes = static_cast<size_t>(probabilities.size(1));
  std::string text;
  for (size_t i = 0; i < images.size(); ++i)
    text +=
        answer(settings.predict[i], probabilities.span<float>().subspan(i * classes, classes), entry.classes) + '\n';
  print_plainly(text);
}

}  // namespace tern::trainer
