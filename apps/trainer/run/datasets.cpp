#include "tern/trainer/run/datasets.h"

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
#include "tern/trainer/report/console.h"
#include "tern/trainer/run/interrupt.h"

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

Transform training_transform(const TrainSettings& settings, const ImageSpec& images) {
  const DatasetEntry& entry = find_dataset(settings);
  if (entry.preprocessed) return {};
  Transform transform = entry.transform;
  if (settings.augment) settings.augment(transform, images);
  const int64_t least = std::max(transform.crop_height, transform.crop_width) - 2 * transform.pad;
  check_input(!entry.resizes || settings.resize >= least, "--resize: found ", settings.resize, ", expected ", least,
              " or more, the part that the network sees");
  return settings.augmentation ? transform : transform.for_evaluation();
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

Transform transform_for(const TrainSettings& settings, const Dataset& data) {
  const auto* images = dynamic_cast<const ImageDataset*>(&data);
  return images ? training_transform(settings, images->spec()) : Transform{};
}

int64_t samples_per_rank(const TrainSettings& s, int ranks) {
  if (s.local_batch_size) return *s.local_batch_size;
  check_input(s.batch_size % ranks == 0, "--batch-size: found ", s.batch_size, ", expected a multiple of ", ranks,
              ", so that the workers share it equally (--local-batch-size sets the samples of each)");
  return s.batch_size / ranks;
}

namespace {

void group_by_length(const Dataset& data, int64_t batch_size, Sampler& sampler) {
  sampler.lengths = lengths_of(data);
  sampler.step_size = batch_size * sampler.ranks;
}

}  // namespace

std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& s, const Dataset& data, const Team& team,
                                                 ImageForm images) {
  const int64_t samples = samples_per_rank(s, team.size());
  const int64_t share = data.size() / team.size();
  check_input(samples <= share, s.local_batch_size ? "--local-batch-size" : "--batch-size", ": found ",
              s.local_batch_size.value_or(s.batch_size), ", expected ",
              s.local_batch_size ? share : share * team.size(), " or fewer: all there is in ", s.data,
              s.local_batch_size && team.size() > 1 ? " for each worker" : "");
  const auto seed = static_cast<uint64_t>(s.seed);
  Sampler sampler = {
      .size = data.size(), .shuffle = s.shuffle, .seed = seed, .rank = team.rank(), .ranks = team.size()};
  if (find_dataset(s).groups_by_length) group_by_length(data, samples, sampler);
  return std::make_unique<DataLoader>(data, sampler,
                                      LoaderOptions{.batch_size = samples,
                                                    .threads = static_cast<int>(s.loader_threads),
                                                    .seed = seed,
                                                    .name = s.data + ", training",
                                                    .transform = transform_for(s, data),
                                                    .images = images,
                                                    .device = parse_device(s.device)});
}

std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& s, const Dataset& data, const Team& team) {
  return std::make_unique<DataLoader>(
      data, Sampler{.size = data.size(), .shuffle = s.shuffle, .seed = static_cast<uint64_t>(s.seed)},
      LoaderOptions{.batch_size = samples_per_rank(s, team.size()),
                    .threads = 0,
                    .name = s.data + ", training",
                    .transform = transform_for(s, data).for_evaluation()});
}

std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& s, const Dataset& data, const Team& team) {
  Sampler sampler = {.size = data.size(), .rank = team.rank(), .ranks = team.size()};
  if (find_dataset(s).groups_by_length) {
    group_by_length(data, s.eval_batch_size, sampler);
    sampler.pool = data.size();  // the scores do not depend on the order
  }
  return std::make_unique<DataLoader>(data, sampler,
                                      LoaderOptions{.batch_size = s.eval_batch_size,
                                                    .drop_last = false,
                                                    .threads = static_cast<int>(s.loader_threads),
                                                    .name = s.data + ", test",
                                                    .transform = transform_for(s, data).for_evaluation()});
}

}  // namespace tern::trainer
