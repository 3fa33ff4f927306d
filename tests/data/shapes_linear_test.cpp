#include <gtest/gtest.h>

#include "tern/data/generated.h"
#include "tests/data/linear_accuracy.h"

namespace tern {
namespace {

TEST(ShapesSlow, AreBeyondALinearClassifier) {
  const double accuracy = linear_accuracy(Shapes(1, Split::train, 32), Shapes(1, Split::test, 32));
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.3);
}

}  // namespace
}  // namespace tern
