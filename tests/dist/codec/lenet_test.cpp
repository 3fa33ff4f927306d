#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "tern/autograd/functional.h"
#include "tern/data/mnist.h"
#include "tern/dist/codec/codec.h"
#include "tern/networks/lenet.h"
#include "tern/optim/sgd.h"

namespace tern::test {
namespace {

constexpr int kTernaryRanks = 4;

struct Images {
  Tensor x, labels;
};

/// `count` examples, from `first` on. Pixels are in [-1, 1], as TernGrad's.
Images images(const ImageDataset& data, int64_t first, int64_t count) {
  Images batch = {Tensor::empty({count, 1, 28, 28}), Tensor::empty({count}, {.dtype = DType::i64})};
  std::vector<uint8_t> pixels(784);
  for (int64_t i = 0; i < count; ++i) {
    batch.labels.data<int64_t>()[i] = data.read(first + i, pixels);
    for (int64_t p = 0; p < 784; ++p)
      batch.x.data<float>()[i * 784 + p] = static_cast<float>(pixels[static_cast<size_t>(p)]) / 127.5f - 1;
  }
  return batch;
}

/// The gradients of one rank.
std::vector<Tensor> gradients(Layer& model, const Images& batch) {
  model.zero_gradients();
  cross_entropy(model(Variable(batch.x)), batch.labels).backward();
  std::vector<Tensor> all;
  for (const auto& [name, parameter] : model.parameters()) all.push_back(parameter->gradient().clone());
  return all;
}

/// The entropy of all ranks' codes of one tensor, in bits. All ranks use the largest of their scalers.
double code_bits(const std::vector<Tensor>& gradients, uint32_t step, uint32_t number) {
  const auto codec = make_codec("ternary");
  const auto tag = [&](size_t rank) {
    return GradientTag{
        "",
        {.seed = 1, .purpose = Purpose::codec, .owner = static_cast<uint32_t>(rank), .step = step, .tensor = number}};
  };
  Tensor shared = Tensor::zeros({1});
  for (size_t rank = 0; rank < gradients.size(); ++rank) {
    const auto scaler = static_cast<float>(codec->scaled()->scalers(tag(rank), gradients[rank]).item());
    shared.data<float>()[0] = std::max(shared.data<float>()[0], scaler);
  }
  std::map<float, double> counts;
  for (size_t rank = 0; rank < gradients.size(); ++rank) {
    std::vector<std::byte> bytes;
    codec->scaled()->append_codes(tag(rank), gradients[rank], shared, bytes);
    Tensor codes = Tensor::zeros(gradients[rank].shape());
    codec->scaled()->add_codes(bytes, Tensor::full({1}, 1), codes);
    for (const float code : codes.span<float>()) ++counts[code];
  }
  const double total = static_cast<double>(gradients.size()) * static_cast<double>(gradients[0].numel());
  double bits = 0;
  for (const auto& [code, count] : counts) bits -= count * std::log2(count / total);
  return bits;
}

// Four ranks share TernGrad's batch of 64. The gradients are from the first steps of a training without a codec. Later
// in training, fewer and fewer examples dominate the gradients, and the entropy falls: to about 0.5 bits after 100
// steps, and 0.25 after 1000.
TEST(TernaryOfLeNet, HasTheEntropyOfRealGradientsSlow) {
  const char* folder = std::getenv("TERN_TEST_DATA");
  if (folder == nullptr) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with mnist/ in it";
  const auto mnist = load_mnist(std::filesystem::path(folder) / "mnist", Split::train);
  networks::LeNet model;
  model.initialize(1);
  Sgd optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4});
  double bits = 0, elements = 0;
  for (uint32_t step = 0; step <= 40; ++step) {
    if (step % 10 == 0) {
      std::vector<std::vector<Tensor>> of_ranks;
      for (int rank = 0; rank < kTernaryRanks; ++rank)
        of_ranks.push_back(gradients(model, images(mnist, 64 * step + 16 * rank, 16)));
      for (uint32_t i = 0; i < of_ranks[0].size(); ++i) {
        std::vector<Tensor> tensors;
        for (const auto& of_rank : of_ranks) tensors.push_back(of_rank[i]);
        bits += code_bits(tensors, step, i);
        elements += kTernaryRanks * static_cast<double>(tensors[0].numel());
      }
    }
    gradients(model, images(mnist, 64 * step, 64));
    optimizer.step();
  }
  EXPECT_GE(bits / elements, 0.67);
  EXPECT_LE(bits / elements, 0.80);
}

}  // namespace
}  // namespace tern::test
