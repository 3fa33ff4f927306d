#include "tern/apps/trainer/datasets.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/trainer/digit_image.h"
#include "tern/apps/trainer/photo_image.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/data/cifar10.h"
#include "tern/data/digits.h"
#include "tern/data/mnist.h"
#include "tern/data/shapes.h"
#include "tern/data/tones.h"

namespace tern {
namespace {

constexpr ImageSpec kDigitSpec = {.channels = 1, .height = 28, .width = 28, .classes = 10};

std::unique_ptr<Dataset> load_digits(const TrainSettings& settings, Split split) {
  return std::make_unique<MemoryDataset>(make_digits(static_cast<uint64_t>(settings.seed), split));
}

std::unique_ptr<Dataset> load_mnist_files(const TrainSettings& settings, Split split) {
  return std::make_unique<MemoryDataset>(load_mnist(settings.data_dir, split));
}

std::unique_ptr<Dataset> load_cifar10_files(const TrainSettings& settings, Split split) {
  return std::make_unique<MemoryDataset>(load_cifar10(settings.data_dir, split));
}

template <int64_t kSide>
std::unique_ptr<Dataset> load_shapes(const TrainSettings& settings, Split split) {
  return std::make_unique<Shapes>(static_cast<uint64_t>(settings.seed), split, kSide);
}

std::unique_ptr<Dataset> load_tones(const TrainSettings& settings, Split split) {
  return std::make_unique<MemoryDataset>(make_tones(static_cast<uint64_t>(settings.seed), split));
}

constexpr const char* kCifarClasses[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                         "dog",      "frog",       "horse", "ship", "truck"};
constexpr const char* kShapeNames[] = {"disc",   "ring", "crescent", "half disc", "triangle",
                                       "square", "bar",  "cross",    "pentagram", "hexagram"};
/// Of each channel over CIFAR-10's training images.
const Transform kCifarTransform = {.mean = {0.4914f, 0.4822f, 0.4465f}, .deviation = {0.2470f, 0.2435f, 0.2616f}};

std::vector<uint8_t> refuse_pictures(const Image&, const ImageSpec&) {
  fail_input({"its pixels are no melody: --data tones has spectrograms of its own making"});
}

std::string fingerprint(const Dataset& data) {
  std::vector<uint8_t> pixels(static_cast<size_t>(data.spec().numel()));
  uint32_t crc = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t label = data.read(i, pixels);
    crc = crc32c(std::as_bytes(std::span(pixels)), crc);
    crc = crc32c(std::as_bytes(std::span(&label, 1)), crc);
  }
  return fmt::format("{:08x}", crc);
}

}  // namespace

std::span<const DatasetEntry> datasets() {
  static const DatasetEntry entries[] = {
      {.name = "digits",
       .needs_folder = false,
       .spec = kDigitSpec,
       .load = load_digits,
       .transform = {},
       .adapt = adapt_digit},
      {.name = "mnist",
       .needs_folder = true,
       .spec = kDigitSpec,
       .load = load_mnist_files,
       .transform = {},
       .adapt = adapt_digit},
      {.name = "tones",
       .needs_folder = false,
       .spec = {.channels = 1, .height = kToneBands, .width = kToneFrames, .classes = kToneClasses},
       .load = load_tones,
       .transform = {},
       .adapt = refuse_pictures},
      {.name = "cifar10",
       .needs_folder = true,
       .spec = kCifar10Spec,
       .load = load_cifar10_files,
       .transform = kCifarTransform,
       .adapt = adapt_photo,
       .classes = kCifarClasses},
      {.name = "shapes",
       .needs_folder = false,
       .spec = {.channels = 3, .height = 32, .width = 32, .classes = kShapeKinds},
       .load = load_shapes<32>,
       .transform = {},
       .adapt = adapt_photo,
       .classes = kShapeNames},
      {.name = "shapes224",
       .needs_folder = false,
       .spec = {.channels = 3, .height = 224, .width = 224, .classes = kShapeKinds},
       .load = load_shapes<224>,
       .transform = {},
       .adapt = adapt_photo,
       .classes = kShapeNames},
  };
  return entries;
}

const DatasetEntry& find_dataset(const std::string& name) {
  const auto entry = std::ranges::find(datasets(), name, &DatasetEntry::name);
  std::string names;
  for (const DatasetEntry& known : datasets()) names += join({names.empty() ? "" : "|", known.name});
  check_input(entry != datasets().end(), "--data: found '", name, "', expected ", names);
  return *entry;
}

Transform training_transform(const TrainSettings& settings) {
  Transform transform = find_dataset(settings.data).transform;
  if (settings.augment) settings.augment(transform);
  return transform;
}

RunData load_run_data(const TrainSettings& settings) {
  const DatasetEntry& entry = find_dataset(settings.data);
  RunData data = {.training = entry.load(settings, Split::train), .test = entry.load(settings, Split::test)};
  data.fingerprint = fingerprint(*data.training);
  return data;
}

}  // namespace tern
