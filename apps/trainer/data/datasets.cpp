#include "tern/trainer/data/datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tern/core/error.h"
#include "tern/data/adapt_image.h"
#include "tern/data/cifar10.h"
#include "tern/data/generated.h"
#include "tern/data/image_folder.h"
#include "tern/data/mnist.h"
#include "tern/data/speech_commands.h"
#include "tern/trainer/image_classification.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::trainer {
namespace {

constexpr ImageSpec kDigitSpec = {.channels = 1, .height = 28, .width = 28, .classes = 10};

std::shared_ptr<const Dataset> load_digits(const TrainSettings& settings, Split split) {
  return std::make_shared<MemoryDataset>(make_digits(static_cast<uint64_t>(settings.seed), split));
}

std::shared_ptr<const Dataset> load_mnist_files(const TrainSettings& settings, Split split) {
  return std::make_shared<MemoryDataset>(load_mnist(settings.data_dir, split));
}

std::shared_ptr<const Dataset> load_cifar10_files(const TrainSettings& settings, Split split) {
  return std::make_shared<MemoryDataset>(load_cifar10(settings.data_dir, split));
}

template <int64_t kSide>
std::shared_ptr<const Dataset> load_shapes(const TrainSettings& settings, Split split) {
  return std::make_shared<Shapes>(static_cast<uint64_t>(settings.seed), split, kSide);
}

std::shared_ptr<const Dataset> load_tones(const TrainSettings& settings, Split split) {
  return std::make_shared<MemoryDataset>(make_tones(static_cast<uint64_t>(settings.seed), split));
}

/// Lets `data` keep its decoded samples, `noun`, in the folder of --cache, if there is one.
template <class Data>
void keep_in_cache(const TrainSettings& settings, Split split, const std::string& noun, Data& data) {
  if (settings.cache.empty()) return;
  std::filesystem::create_directories(settings.cache);
  const auto cache = std::filesystem::path(settings.cache) / join({split == Split::train ? "train." : "test.", noun});
  data.use_cache(cache, [&](std::optional<size_t> done) {
    if (InterruptGuard::interrupted())
      throw Interrupted(
          done ? join({"interrupted after ", *done, " of the ", data.size(), " ", noun, " for ", cache.string(),
                       "; nothing is kept"})
               : join({"interrupted while waiting for another process, which holds ", cache.string(), ".lock"}));
    if (done == 0 && !settings.quiet)
      LineWriter(STDOUT_FILENO).print(fmt::format("note: decoding {} {} into {}", data.size(), noun, cache.string()));
  });
}

std::shared_ptr<const Dataset> load_images(const TrainSettings& settings, Split split) {
  auto images =
      std::make_shared<ImageFolder>(list_images(settings.data_dir, split),
                                    ImageFolderOptions{.side = static_cast<int>(settings.resize), .fit = settings.fit});
  keep_in_cache(settings, split, "images", *images);
  return images;
}

std::shared_ptr<const Dataset> load_speech_commands(const TrainSettings& settings, Split split) {
  auto clips = std::make_shared<SpeechCommands>(settings.data_dir, split);
  keep_in_cache(settings, split, "clips", *clips);
  return clips;
}

void describe_speech_commands(const TrainSettings& settings, DatasetEntry& entry) {
  entry.classes = list_speech_words(settings.data_dir);
  entry.spec = {.channels = 1,
                .height = MelSpectrogram::kBands,
                .width = MelSpectrogram::kFrames,
                .classes = std::ssize(entry.classes)};
}

void describe_images(const TrainSettings& settings, DatasetEntry& entry) {
  entry.classes = list_image_classes(settings.data_dir);
  entry.spec = {
      .channels = 3, .height = settings.resize, .width = settings.resize, .classes = std::ssize(entry.classes)};
  if (settings.fit == Fit::squash) entry.adapt = squash_photo;
}

/// Mean and standard deviation of each channel: over CIFAR-10's training images, and over ImageNet's.
const Transform kCifarTransform = {.mean = {0.4914f, 0.4822f, 0.4465f}, .deviation = {0.2470f, 0.2435f, 0.2616f}};
const Transform kImageNetTransform = {.mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};

std::vector<uint8_t> refuse_pictures(const Image&, const ImageSpec&) {
  fail_input({"this file is not a melody: --data tones has only generated spectrograms"});
}

/// "x: f32 [6], frames: sequence of f32 [12], label: i64 []"
std::string described_fields(const Dataset& data) {
  std::string text;
  for (const Field& field : data.fields()) {
    const char* kind = field.kind == FieldKind::sequence ? "sequence of "
                       : field.kind == FieldKind::sparse ? "sparse "
                                                         : "";
    text += join({text.empty() ? "" : ", ", field.name, ": ", kind, field.dtype, " ", field.shape});
  }
  return text;
}

}  // namespace

const std::vector<DatasetEntry>& picture_datasets() {
  static const std::vector<std::string> shape_names = {"disc",   "ring", "crescent", "half disc", "triangle",
                                                       "square", "bar",  "cross",    "pentagram", "hexagram"};
  static const std::vector<DatasetEntry> entries = {
      {.name = "digits", .needs_folder = false, .load = load_digits, .spec = kDigitSpec, .adapt = adapt_digit},
      {.name = "mnist", .needs_folder = true, .load = load_mnist_files, .spec = kDigitSpec, .adapt = adapt_digit},
      {.name = "tones",
       .needs_folder = false,
       .load = load_tones,
       .spec = {.channels = 1, .height = kToneBands, .width = kToneFrames, .classes = kToneClasses},
       .adapt = refuse_pictures},
      {.name = "cifar10",
       .needs_folder = true,
       .load = load_cifar10_files,
       .spec = kCifar10Spec,
       .transform = kCifarTransform,
       .adapt = adapt_photo,
       .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}},
      {.name = "shapes",
       .needs_folder = false,
       .load = load_shapes<32>,
       .spec = {.channels = 3, .height = 32, .width = 32, .classes = kShapeKinds},
       .adapt = adapt_photo,
       .classes = shape_names},
      {.name = "shapes224",
       .needs_folder = false,
       .load = load_shapes<224>,
       .spec = {.channels = 3, .height = 224, .width = 224, .classes = kShapeKinds},
       .adapt = adapt_photo,
       .classes = shape_names},
      {.name = "speech-commands",
       .needs_folder = true,
       .load = load_speech_commands,
       .caches = true,
       .preprocessed = true,
       .describe = describe_speech_commands},
      {.name = "images",
       .needs_folder = true,
       .load = load_images,
       .caches = true,
       .resizes = true,
       .transform = kImageNetTransform,
       .adapt = adapt_photo,
       .describe = describe_images},
  };
  return entries;
}

std::span<const DatasetEntry> offered_datasets(const TrainSettings& settings) {
  return settings.datasets.empty() ? picture_datasets() : settings.datasets;
}

const DatasetEntry* known_dataset(const TrainSettings& settings) {
  const auto offered = offered_datasets(settings);
  const auto entry = std::ranges::find(offered, settings.data, &DatasetEntry::name);
  return entry == offered.end() ? nullptr : &*entry;
}

const DatasetEntry& find_dataset(const TrainSettings& settings) {
  const DatasetEntry* const entry = known_dataset(settings);
  std::string names;
  for (const DatasetEntry& known : offered_datasets(settings)) names += join({names.empty() ? "" : "|", known.name});
  check_input(entry != nullptr, "--data: found '", settings.data, "', expected ", names);
  return *entry;
}

DatasetEntry describe_dataset(const TrainSettings& settings) {
  DatasetEntry entry = find_dataset(settings);
  if (entry.describe) entry.describe(settings, entry);
  return entry;
}

bool needs_data_to_describe(const TrainSettings& settings) {
  const DatasetEntry& entry = find_dataset(settings);
  return !entry.describe && entry.spec.numel() == 0;
}

std::shared_ptr<const Task> task_of(const TrainSettings& settings) {
  return settings.task ? settings.task
                       : std::make_shared<ImageClassification>(settings.label_smoothing, settings.top, settings.tta);
}

std::shared_ptr<const Dataset> load_split(const TrainSettings& settings, Split split) {
  auto data = find_dataset(settings).load(settings, split);
  check(data != nullptr, "the data set '", settings.data, "': `load` returned no data set");
  check_input(data->size() > 0, "--data ", settings.data, ": the ", split == Split::train ? "training" : "test",
              " set has no samples");
  if (settings.top == 1) return data;
  const auto* const images = dynamic_cast<const ImageDataset*>(data.get());
  const int64_t classes = images ? images->spec().classes : describe_dataset(settings).spec.classes;
  check_input(classes == 0 || settings.top < classes, "--top: found ", settings.top, ", expected fewer than the ",
              classes, " classes of ", settings.data);
  return data;
}

RunData load_run_data(const TrainSettings& settings) {
  RunData data = {.training = load_split(settings, Split::train), .test = load_split(settings, Split::test)};
  const std::string training = described_fields(*data.training), test = described_fields(*data.test);
  check_input(training == test, "--data ", settings.data, ": the training set has the fields ", training,
              ", the test set ", test, ", expected the same");
  if (settings.workers || !settings.checkpoint.empty())
    data.fingerprint = fmt::format("{:08x}", data.training->fingerprint());
  return data;
}

}  // namespace tern::trainer
