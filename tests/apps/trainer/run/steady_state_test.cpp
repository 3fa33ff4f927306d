#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/data/loader.h"
#include "tern/networks/lenet.h"
#include "tern/networks/resnet.h"
#include "tern/optim/sgd.h"

namespace tern {
namespace {

int64_t system_allocations() { return device_backend({}).statistics().system_allocations; }

/// Trains over three epochs of a loader, as the trainer does. Expects that no step after the second takes memory for
/// tensors from the system.
void expect_no_memory_from_the_system(Layer& model, const ImageSpec& spec, int64_t batch_size, DType activations) {
  constexpr int64_t kBatches = 4;
  const auto count = static_cast<size_t>(kBatches * batch_size), size = static_cast<size_t>(spec.numel());
  const MemoryDataset data(spec, std::vector<uint8_t>(count * size), std::vector<uint8_t>(count));
  DataLoader loader(data, {.size = data.size(), .shuffle = true}, {.batch_size = batch_size});
  model.initialize(1);
  Sgd optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  int64_t after_two = 0;
  for (int64_t step = 0; step < 3 * kBatches; ++step) {
    if (step % kBatches == 0) loader.start({.epoch = step / kBatches});
    const auto batch = loader.next();
    const Variable x((*batch)["image"].to(activations));
    optimizer.zero_gradients();
    cross_entropy(model(x), (*batch)["label"]).backward();
    optimizer.step();
    if (step == 1) after_two = system_allocations();
  }
  EXPECT_EQ(system_allocations(), after_two);
}

constexpr ImageSpec kDigit = {.channels = 1, .height = 28, .width = 28, .classes = 10};
constexpr ImageSpec kPhoto = {.channels = 3, .height = 8, .width = 8, .classes = 10};

// Each network has its own test, because a later network could use memory that an earlier one has cached.
TEST(SteadyState, LeNet) {
  networks::LeNet lenet;
  expect_no_memory_from_the_system(lenet, kDigit, 8, DType::f32);
}
TEST(SteadyState, LeNetInBf16) {
  networks::LeNet lenet;
  expect_no_memory_from_the_system(lenet, kDigit, 8, DType::bf16);
}
TEST(SteadyState, ResNet18) {
  networks::ResNet resnet({.depth = 18});
  expect_no_memory_from_the_system(resnet, kPhoto, 2, DType::f32);
}
TEST(SteadyState, ResNet18InBf16Slow) {
  networks::ResNet resnet({.depth = 18});
  expect_no_memory_from_the_system(resnet, kPhoto, 2, DType::bf16);
}

}  // namespace
}  // namespace tern
