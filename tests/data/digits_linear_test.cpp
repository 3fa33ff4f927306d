#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "tern/data/generated.h"
#include "tern/data/loader.h"

namespace tern {
namespace {

/// Multinomial logistic regression on the pixels.
class LinearClassifier {
 public:
  std::array<float, 10> probabilities(const float* image) const {
    std::array<float, 10> values = bias_;
    for (size_t i = 0; i < weights_.size(); ++i)
      for (size_t k = 0; k < 10; ++k) values[k] += image[i] * weights_[i][k];
    const float largest = std::ranges::max(values);
    float sum = 0;
    for (float& value : values) sum += value = std::exp(value - largest);
    for (float& value : values) value /= sum;
    return values;
  }

  void learn(const float* image, int64_t label, float lr) {
    auto error = probabilities(image);
    error[static_cast<size_t>(label)] -= 1;
    for (size_t i = 0; i < weights_.size(); ++i)
      for (size_t k = 0; k < 10; ++k) weights_[i][k] -= lr * error[k] * image[i];
    for (size_t k = 0; k < 10; ++k) bias_[k] -= lr * error[k];
  }

 private:
  std::array<std::array<float, 10>, kDigitSide * kDigitSide> weights_{};
  std::array<float, 10> bias_{};
};

TEST(DigitsSlow, AreBeyondALinearClassifier) {
  const MemoryDataset train = make_digits(1, Split::train), test = make_digits(1, Split::test);
  const Transform ink = {.mean = {0}, .deviation = {1}};
  DataLoader loader(train, {.size = train.size(), .shuffle = true}, {.transform = ink});
  LinearClassifier classifier;
  for (const auto& [epoch, lr] : {std::pair{0, 0.02f}, {1, 0.01f}, {2, 0.003f}, {3, 0.001f}}) {
    loader.start({.epoch = epoch});
    while (const auto batch = loader.next())
      for (int64_t i = 0; i < batch->size(); ++i)
        classifier.learn((*batch)["image"].slice(i, i + 1).data<float>(), (*batch)["label"].data<int64_t>()[i], lr);
  }
  int64_t right = 0;
  DataLoader evaluation(test, {.size = test.size()}, {.drop_last = false, .transform = ink});
  while (const auto batch = evaluation.next())
    for (int64_t i = 0; i < batch->size(); ++i) {
      const auto found = classifier.probabilities((*batch)["image"].slice(i, i + 1).data<float>());
      right += std::ranges::max_element(found) - found.begin() == (*batch)["label"].data<int64_t>()[i];
    }
  const double accuracy = static_cast<double>(right) / static_cast<double>(test.size());
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.70);  // a linear classifier learns a part of the task
  EXPECT_LT(accuracy, 0.92);
}

}  // namespace
}  // namespace tern
