#include <gtest/gtest.h>

#include <algorithm>

#include "tern/autograd/layout.h"
#include "tern/autograd/loss.h"
#include "tern/data/loader.h"
#include "tern/data/shapes.h"
#include "tern/layers/linear.h"
#include "tern/optim/adam.h"

namespace tern {
namespace {

TEST(ShapesSlow, AreBeyondALinearClassifier) {
  const Shapes train(1, Split::train, 32), test(1, Split::test, 32);
  Linear classifier({.in = train.spec().numel(), .out = kShapeKinds});
  classifier.initialize(1);
  Adam optimizer(classifier.parameters(), {.lr = 3e-4});
  DataLoader loader(train, {.size = train.size(), .shuffle = true}, {});
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start({.epoch = epoch});
    while (const auto batch = loader.next()) {
      optimizer.zero_gradients();
      cross_entropy(classifier(flatten(batch->images)), batch->labels).backward();
      optimizer.step();
    }
  }
  int64_t right = 0;
  DataLoader evaluation(test, {.size = test.size()}, {.batch_size = 100});
  while (const auto batch = evaluation.next()) {
    const Tensor scores = classifier(flatten(batch->images)).value();
    for (int64_t i = 0; i < batch->size(); ++i) {
      const float* row = scores.data<float>() + i * kShapeKinds;
      right += std::max_element(row, row + kShapeKinds) - row == batch->labels.data<int64_t>()[i];
    }
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(test.size());
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.3);
}

}  // namespace
}  // namespace tern
