#include <gtest/gtest.h>

#include <algorithm>

#include "tern/autograd/functional.h"
#include "tern/data/generated.h"
#include "tern/data/loader.h"
#include "tern/layers/linear.h"
#include "tern/optim/adam.h"

namespace tern {
namespace {

/// Trains a linear classifier for three epochs on `train`. Returns the share of `test` that it classifies correctly.
double linear_accuracy(const ImageDataset& train, const ImageDataset& test) {
  const int64_t classes = train.spec().classes;
  Linear classifier({.in = train.spec().numel(), .out = classes});
  classifier.initialize(1);
  Adam optimizer(classifier.parameters(), {.lr = 3e-4});
  DataLoader loader(train, {.size = train.size(), .shuffle = true}, {});
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start({.epoch = epoch});
    while (const auto batch = loader.next()) {
      optimizer.zero_gradients();
      cross_entropy(classifier(flatten((*batch)["image"])), (*batch)["label"]).backward();
      optimizer.step();
    }
  }
  int64_t right = 0;
  DataLoader evaluation(test, {.size = test.size()}, {.batch_size = 100});
  while (const auto batch = evaluation.next()) {
    const Tensor scores = classifier(flatten((*batch)["image"])).value();
    for (int64_t i = 0; i < batch->size(); ++i) {
      const float* row = scores.data<float>() + i * classes;
      right += std::max_element(row, row + classes) - row == (*batch)["label"].data<int64_t>()[i];
    }
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(test.size());
  testing::Test::RecordProperty("accuracy", std::to_string(accuracy));
  return accuracy;
}

TEST(ShapesSlow, AreBeyondALinearClassifier) {
  EXPECT_LT(linear_accuracy(Shapes(1, Split::train, 32), Shapes(1, Split::test, 32)), 0.3);
}

TEST(TonesSlow, AreBeyondALinearClassifier) {
  const double accuracy = linear_accuracy(make_tones(1, Split::train), make_tones(1, Split::test));
  EXPECT_GT(accuracy, 0.30);  // a linear classifier learns a part of the task
  EXPECT_LT(accuracy, 0.85);
}

}  // namespace
}  // namespace tern
