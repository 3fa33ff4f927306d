#include <fmt/format.h>

#include <memory>
#include <utility>

#include "tern/data/cifar10.h"
#include "tern/data/loader.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/resnet.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

constexpr int64_t kLoadedBatch = 64, kExamples = 100 * kLoadedBatch;

/// Loads batches of images like CIFAR-10's. The calling thread reads and augments them.
class Loading {
 public:
  explicit Loading(const Transform& transform)
      : data_(kCifar10Spec, pixels(), std::vector<uint8_t>(static_cast<size_t>(kExamples))),
        loader_(data_, {.size = kExamples, .shuffle = true},
                {.batch_size = kLoadedBatch, .threads = 0, .transform = transform}) {}

  void run() {
    if (loader_.next()) return;
    loader_.start({.epoch = ++epoch_});
    loader_.next();
  }

 private:
  static std::vector<uint8_t> pixels() {
    std::vector<uint8_t> values(static_cast<size_t>(kExamples * kCifar10Spec.numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * i >> 7);
    return values;
  }

  MemoryDataset data_;
  DataLoader loader_;
  int64_t epoch_ = 0;
};

}  // namespace

// Loads a batch of 64 on one thread. Compare with train_step/*/b64/t1.
void add_loading(std::vector<Case>& cases) {
  for (const networks::Network* network : {&networks::cifarnet(), &networks::resnet()}) {
    Transform transform;
    network->recipe.augment(transform, kCifar10Spec);
    cases.push_back({fmt::format("load/cifar10/{}/b{}/t1", network->name, kLoadedBatch), 1, [transform] {
                       const auto loading = std::make_shared<Loading>(transform);
                       return [loading] { loading->run(); };
                     }});
  }
}

}  // namespace tern::bench
