#include "tern/trainer/data/loaders.h"

#include <algorithm>
#include <utility>

#include "tern/core/error.h"
#include "tern/trainer/data/datasets.h"

namespace tern::trainer {
namespace {

void group_by_length(const Dataset& data, int64_t batch_size, Sampler& sampler) {
  sampler.lengths = lengths_of(data);
  sampler.step_size = batch_size * sampler.ranks;
}

}  // namespace

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

std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& s, const Dataset& data, const Team& team,
                                                 ImageForm images, std::shared_ptr<const std::vector<int64_t>> labels) {
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
                                                    .labels = std::move(labels),
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
