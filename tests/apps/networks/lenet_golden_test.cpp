#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/core/safetensors.h"
#include "tern/networks/lenet.h"
#include "tern/optim/sgd.h"

namespace tern {
namespace {

/// Uniform pixels in [-1, 1), and labels. Both depend on `step` alone. `make_golden.py` draws the same.
struct GoldenBatch {
  static constexpr int64_t kRows = 4;
  Tensor x = Tensor::empty({kRows, 1, 28, 28});
  Tensor labels = Tensor::empty({kRows}, {DType::i64});

  explicit GoldenBatch(uint32_t step) {
    const RandomStream random({.seed = 1, .purpose = Purpose::test, .tensor = step});
    const auto pixels = static_cast<uint64_t>(x.numel());
    for (uint64_t i = 0; i < pixels; ++i) x.data<float>()[i] = random.uniform(i) * 2 - 1;
    for (uint64_t i = 0; i < kRows; ++i) labels.data<int64_t>()[i] = random.below(pixels + i, 10);
  }
};

void expect_losses_of_pytorch(Layer& model, const char* name) {
  const auto expected = read_safetensors(TERN_GOLDEN_DIR "/lenet.safetensors").tensors.at(name).to_vector<double>();
  ASSERT_EQ(expected.size(), 5u);
  model.initialize(1);
  Sgd optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  for (uint32_t step = 0; step < expected.size(); ++step) {
    const GoldenBatch batch(step);
    const Variable loss = cross_entropy(model(batch.x.to(MemoryFormat::channels_last)), batch.labels);
    model.zero_gradients();
    loss.backward();
    optimizer.step();
    EXPECT_NEAR(loss.value().item(), expected[step], 1e-5 * expected[step]) << "step " << step + 1;
  }
}

// Starts from tern's initial values for seed 1. The PyTorch side draws them with its own Philox.
TEST(LeNetGolden, FirstLossesAreThoseOfPyTorch) {
  networks::LeNet lenet;
  expect_losses_of_pytorch(lenet, "lenet");
}
TEST(LeNetGolden, CaffesFirstLossesAreThoseOfPyTorch) {
  networks::CaffeLeNet lenet;
  expect_losses_of_pytorch(lenet, "caffe_lenet");
}

}  // namespace
}  // namespace tern
