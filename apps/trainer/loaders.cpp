#include "tern/apps/trainer/loaders.h"

#include "tern/apps/trainer/datasets.h"
#include "tern/core/error.h"

namespace tern {

int64_t images_per_rank(const TrainSettings& s, int ranks) {
  if (s.method != "data-parallel") return s.batch_size;
  check_input(s.batch_size % ranks == 0, "--batch-size: found ", s.batch_size, ", expected a multiple of ", ranks,
              ", so that the workers share it equally");
  return s.batch_size / ranks;
}

std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& s, const Dataset& data, const Team& team,
                                                 bool with_images) {
  const int64_t images = images_per_rank(s, team.size());
  const int64_t most = s.method == "data-parallel" ? data.size() : data.size() / team.size();
  check_input(images <= data.size() / team.size(), "--batch-size: found ", s.batch_size, ", expected ", most,
              " or fewer: all there is in ", s.data, most < data.size() ? " for each worker" : "");
  const auto seed = static_cast<uint64_t>(s.seed);
  return std::make_unique<DataLoader>(
      data, Sampler{.size = data.size(), .shuffle = s.shuffle, .seed = seed, .rank = team.rank(), .ranks = team.size()},
      LoaderOptions{.batch_size = images,
                    .threads = static_cast<int>(s.loader_threads),
                    .seed = seed,
                    .transform = training_transform(s, data.spec()),
                    .images = with_images});
}

std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& s, const Dataset& data) {
  return std::make_unique<DataLoader>(
      data, Sampler{.size = data.size(), .shuffle = s.shuffle, .seed = static_cast<uint64_t>(s.seed)},
      LoaderOptions{
          .batch_size = s.batch_size, .threads = 0, .transform = training_transform(s, data.spec()).for_evaluation()});
}

std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& s, const Dataset& data, const Team& team) {
  return std::make_unique<DataLoader>(data, Sampler{.size = data.size(), .rank = team.rank(), .ranks = team.size()},
                                      LoaderOptions{.batch_size = s.eval_batch_size,
                                                    .drop_last = false,
                                                    .threads = static_cast<int>(s.loader_threads),
                                                    .transform = training_transform(s, data.spec()).for_evaluation()});
}

}  // namespace tern
