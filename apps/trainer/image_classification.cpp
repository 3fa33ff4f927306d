#include "tern/trainer/image_classification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/data/image.h"
#include "tern/data/image_decoder.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/run/recipe.h"

namespace tern {

using namespace trainer;

namespace {

constexpr size_t kShownClasses = 3;

/// A picture as an example for the model.
std::vector<float> example_of(const Image& image, const DatasetEntry& entry, const Transform& transform) {
  const auto pixels = entry.adapt(image, entry.spec);
  std::vector<float> example(static_cast<size_t>(transform.output(entry.spec).numel()));
  transform.apply(entry.spec, transform.draw(entry.spec, 0, 0, 0), pixels, example);
  return example;
}

/// A batch of examples of the shape `spec`.
Tensor batch_of(const std::vector<std::vector<float>>& examples, const ImageSpec& spec) {
  const Tensor batch = Tensor::empty({std::ssize(examples), spec.channels, spec.height, spec.width},
                                     {.format = MemoryFormat::channels_last});
  float* place = batch.data<float>();
  for (const std::vector<float>& example : examples) place = std::ranges::copy(example, place).out;
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

std::vector<DatasetEntry> ImageClassification::datasets() const { return picture_datasets(); }

Forward ImageClassification::loss(Layer& model, const DeviceBatch& batch) const {
  const Variable images = batch.input("image");
  const Variable logits = model.training() ? model(images) : mean_over_views(model, images, views_);
  return {cross_entropy(logits, batch["label"], {.smoothing = model.training() ? label_smoothing_ : 0}), {logits}};
}

Variable mean_over_views(Layer& model, const Variable& images, TestViews views) {
  if (views == TestViews::none) return model(images);
  const int64_t height = images.value().size(2), width = images.value().size(3);
  const auto with_mirror = [&](const Variable& x) {
    // A border as wide as the image has the whole mirror image.
    const Variable mirror = slice(reflection_pad2d(x, {.left = width - 1}), 3, 0, width);
    return (model(x) + model(mirror)) * 0.5;
  };
  if (views == TestViews::mirror) return with_mirror(images);
  check_input(height >= 2 && width >= 2, "--tta crops: found images of ", height, "x", width, ", expected 2x2 or more");
  const Variable padded = reflection_pad2d(images, {.top = 1, .bottom = 1, .left = 1, .right = 1});
  const auto crop = [&](int64_t at) { return slice(slice(padded, 2, at, at + height), 3, at, at + width); };
  return with_mirror(images) * 0.5 + (with_mirror(crop(0)) + with_mirror(crop(2))) * 0.25;
}

std::vector<Score> ImageClassification::scores() const {
  return {{.name = top_ == 1 ? "accuracy" : fmt::format("top-{} accuracy", top_)}};
}

namespace {

/// The classes whose value comes before the label's. NaN comes before nothing, and nothing before NaN, except by order.
int64_t classes_before(const float* row, int64_t classes, int64_t label) {
  const float own = row[label];
  return std::count_if(row, row + label, [own](float value) { return !(value < own); }) +
         std::count_if(row + label + 1, row + classes, [own](float value) { return value > own; });
}

}  // namespace

int64_t count_correct(const Tensor& logits, const Tensor& labels, int64_t top) {
  const Tensor rows = logits.to(Device{}).to(DType::f32);
  const int64_t classes = rows.size(1);
  const float* row = rows.data<float>();
  int64_t correct = 0;
  for (const int64_t label : labels.span<int64_t>()) {
    correct += classes_before(row, classes, label) < top;
    row += classes;
  }
  return correct;
}

std::vector<Ratio> ImageClassification::count(std::span<const Tensor> outputs, const Batch& batch) const {
  return {{static_cast<double>(count_correct(outputs[0], batch["label"], top_)), static_cast<double>(batch.size())}};
}

// Reads and answers a group of files at a time, so that the number of files does not determine the memory.
void ImageClassification::predict(Module& model, const TrainSettings& settings,
                                  const std::function<void(const std::string&)>& print) const {
  const DatasetEntry entry = describe_dataset(settings);
  check_input(entry.adapt != nullptr && entry.spec.numel() > 0, "--predict: --data ", entry.name,
              " does not say how a picture becomes one of its examples");
  auto* const layer = dynamic_cast<Layer*>(&model);
  check(layer != nullptr, "the application's model is no Layer, which --predict of pictures needs");
  const NoGradient no_gradient;
  const Transform transform = training_transform(settings, entry.spec).for_evaluation();
  std::vector<std::string> unread;
  std::span<const std::string> rest = settings.predict;
  while (!rest.empty()) {
    const auto group = rest.first(std::min(rest.size(), static_cast<size_t>(settings.eval_batch_size)));
    rest = rest.subspan(group.size());
    std::vector<std::string> paths;
    std::vector<std::vector<float>> examples;
    for (const std::string& path : group) {
      Image image;
      try {
        image = read_image(path, static_cast<int>(entry.spec.channels));
      } catch (const InputError& error) {
        unread.emplace_back(error.what());
        continue;
      }
      examples.push_back(example_of(image, entry, transform));
      paths.push_back(path);
    }
    if (examples.empty()) continue;
    const Tensor batch = batch_of(examples, transform.output(entry.spec)).to(parse_device(settings.device));
    const Variable logits = (*layer)(convert(Variable(batch), activation_dtype(settings)));
    const Tensor probabilities = softmax(convert(logits, DType::f32)).value().to(Device{});
    const auto classes = static_cast<size_t>(probabilities.size(1));
    std::string text;
    for (size_t i = 0; i < paths.size(); ++i)
      text += answer(paths[i], probabilities.span<float>().subspan(i * classes, classes), entry.classes) + '\n';
    print(text);
  }
  check_input(unread.empty(), fmt::format("{}", fmt::join(unread, "; ")));
}

}  // namespace tern
