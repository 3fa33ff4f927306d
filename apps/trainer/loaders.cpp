#include "tern/apps/trainer/loaders.h"

#include "tern/apps/trainer/datasets.h"
#include "tern/core/error.h"

namespace tern {

std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& s, const Dataset& data) {
  check_input(s.batch_size <= data.size(), "--batch-size: found ", s.batch_size, ", expected ", data.size(),
              " or fewer: all there is in ", s.data);
  const auto seed = static_cast<uint64_t>(s.seed);
  return std::make_unique<DataLoader>(data, Sampler{.size = data.size(), .shuffle = s.shuffle, .seed = seed},
                                      LoaderOptions{.batch_size = s.batch_size,
                                                    .threads = static_cast<int>(s.loader_threads),
                                                    .seed = seed,
                                                    .transform = find_dataset(s.data).transform});
}

std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& s, const Dataset& data) {
  return std::make_unique<DataLoader>(data, Sampler{.size = data.size()},
                                      LoaderOptions{.batch_size = s.eval_batch_size,
                                                    .drop_last = false,
                                                    .threads = static_cast<int>(s.loader_threads),
                                                    .transform = find_dataset(s.data).transform.for_evaluation()});
}

}  // namespace tern
