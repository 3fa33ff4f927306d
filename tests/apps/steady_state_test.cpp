#include <gtest/gtest.h>

#include "tern/apps/models/lenet.h"
#include "tern/apps/models/resnet.h"
#include "tern/autograd/loss.h"
#include "tern/optim/sgd.h"

namespace tern {
namespace {

int64_t system_allocations() { return device_backend({}).statistics().system_allocations; }

/// Trains on one batch and expects that no step after the second takes memory for tensors from the system.
void expect_no_memory_from_the_system(Module& model, const Shape& batch) {
  model.initialize(1);
  Sgd optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor x = Tensor::zeros(batch, {.format = MemoryFormat::channels_last});
  const Tensor labels = Tensor::zeros({batch[0]}, {DType::i64});
  int64_t after_two = 0;
  for (int step = 1; step <= 6; ++step) {
    model.zero_gradients();
    cross_entropy(model(x), labels).backward();
    optimizer.step();
    if (step == 2) after_two = system_allocations();
  }
  EXPECT_EQ(system_allocations(), after_two);
}

TEST(SteadyState, LeNetTakesNoMemoryFromTheSystem) {
  models::LeNet lenet;
  expect_no_memory_from_the_system(lenet, {8, 1, 28, 28});
}
TEST(SteadyState, ResNet18TakesNoMemoryFromTheSystem) {
  models::ResNet18 resnet({.classes = 10});
  expect_no_memory_from_the_system(resnet, {2, 3, 8, 8});
}

}  // namespace
}  // namespace tern
