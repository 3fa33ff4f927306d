#include <gtest/gtest.h>

#include "tern/data/generated.h"
#include "tests/data/linear_accuracy.h"

namespace tern {
namespace {

TEST(TonesSlow, AreBeyondALinearClassifier) {
  const double accuracy = linear_accuracy(make_tones(1, Split::train), make_tones(1, Split::test));
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.30);  // a linear classifier learns a part of the task
  EXPECT_LT(accuracy, 0.85);
}

}  // namespace
}  // namespace tern
