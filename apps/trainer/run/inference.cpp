#include "tern/trainer/run/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/data/image.h"
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

constexpr int kBox = 20;

/// The median grey value of the picture's edge: the colour of the paper.
int background(const Image& image) {
  std::vector<uint8_t> edge;
  for (int x = 0; x < image.width; ++x) edge.insert(edge.end(), {image.at(x, 0), image.at(x, image.height - 1)});
  for (int y = 0; y < image.height; ++y) edge.insert(edge.end(), {image.at(0, y), image.at(image.width - 1, y)});
  std::ranges::nth_element(edge, edge.begin() + static_cast<std::ptrdiff_t>(edge.size() / 2));
  return edge[edge.size() / 2];
}

/// Converts to bright ink on black, 0 to 255; removes faint differences of the paper.
Image ink_of(Image image) {
  const int paper = background(image);
  const bool dark_ink = paper > 127;
  int most = 1;
  for (const uint8_t grey : image.values) most = std::max(most, dark_ink ? paper - grey : grey - paper);
  for (uint8_t& grey : image.values) {
    const double ink = std::max(0, dark_ink ? paper - grey : grey - paper) / static_cast<double>(most);
    grey = static_cast<uint8_t>(std::clamp((ink - 0.15) / 0.85, 0.0, 1.0) * 255 + 0.5);
  }
  return image;
}

/// The part of `image` with ink; all of it if there is none.
Image crop_to_ink(const Image& image) {
  int left = image.width, right = -1, top = image.height, bottom = -1;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      if (image.at(x, y) == 0) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  if (right < 0) return image;
  Image crop{.width = right - left + 1, .height = bottom - top + 1, .values = {}};
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) crop.values.push_back(image.at(x, y));
  return crop;
}

/// Puts `ink` into a black picture, with its centre of mass as near to the middle as possible without cutting it.
Image center(const Image& ink, int width, int height) {
  double mass = 0, sum_x = 0, sum_y = 0;
  for (int y = 0; y < ink.height; ++y)
    for (int x = 0; x < ink.width; ++x) {
      mass += ink.at(x, y);
      sum_x += (x + 0.5) * ink.at(x, y);
      sum_y += (y + 0.5) * ink.at(x, y);
    }
  const double center_x = mass > 0 ? sum_x / mass : ink.width / 2.0;
  const double center_y = mass > 0 ? sum_y / mass : ink.height / 2.0;
  const int left = std::clamp(static_cast<int>(std::lround(width / 2.0 - center_x)), 0, width - ink.width);
  const int top = std::clamp(static_cast<int>(std::lround(height / 2.0 - center_y)), 0, height - ink.height);
  Image centered{.width = width, .height = height, .values = {}};
  centered.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int y = 0; y < ink.height; ++y)
    for (int x = 0; x < ink.width; ++x)
      centered.values[static_cast<size_t>(y + top) * static_cast<size_t>(width) + static_cast<size_t>(x + left)] =
          ink.at(x, y);
  return centered;
}

constexpr size_t kShownClasses = 3;

std::unique_ptr<Layer> finished_model(const Application& application, const TrainSettings& settings) {
  auto model = make_model(application, settings);
  if (settings.resume) load_evaluated_model(settings.checkpoint, *model);
  model->set_training(false);
  return model;
}

/// A batch with one example per picture.
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

std::vector<uint8_t> adapt_digit(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  if (image.width == width && image.height == height && background(image) < 32) return image.values;
  const Image ink = crop_to_ink(ink_of(image));
  const double scale = static_cast<double>(kBox) / std::max(ink.width, ink.height);
  const Image fitted = resize(ink.view(), std::max(1, static_cast<int>(std::lround(ink.width * scale))),
                              std::max(1, static_cast<int>(std::lround(ink.height * scale))));
  return center(fitted, width, height).values;
}

std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  return resize(middle(image.view(), width, height), width, height).values;
}

std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec) {
  return resize(image.view(), static_cast<int>(spec.width), static_cast<int>(spec.height)).values;
}

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
