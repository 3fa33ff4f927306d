#include "tern/kernels/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/parallel.h"
#include "tern/core/random.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

Tensor floats(const std::vector<float>& values) { return Tensor::from({static_cast<int64_t>(values.size())}, values); }

TEST(EmbeddingBag, MultipliesASparseMatrix) {
  // [2·c0 + 10·c2 + c2, 0, -c1]
  const Bags bags{integers({0, 2, 2, 1}), integers({0, 3, 3, 4}), floats({2, 10, 1, -1})};
  const Tensor weight = f64({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), dy = f64({3, 2}, {1, 10, 100, 1000, 3, 5});
  Tensor y = empty_f64({3, 2}), dw = empty_f64({4, 2});
  embedding_bag(weight, bags, y);
  expect_values(y, {57, 70, 0, 0, -3, -4});
  embedding_bag_backward(dy, bags, dw);
  expect_values(dw, {2, 20, -3, -5, 11, 110, 0, 0});
}

TEST(EmbeddingBag, CountsEachElementOnceWithoutValues) {
  const Bags bags{integers({0, 1, 1}), integers({0, 1, 3}), {}};
  Tensor y = empty_f64({2, 1}), dw = empty_f64({2, 1});
  embedding_bag(f64({2, 1}, {3, 5}), bags, y);
  expect_values(y, {3, 10});
  embedding_bag_backward(f64({2, 1}, {7, 11}), bags, dw);
  expect_values(dw, {7, 22});
}

TEST(EmbeddingBag, SumsBf16InF32OnCpuAndCuda) {
  // In bf16, 256 + 1 is 256.
  const Bags bags{integers(std::vector<int64_t>(512, 0)), integers({0, 512}), {}};
  const TensorOptions bf16{.dtype = DType::bf16};
  for (const Target on : {Target::reference, Target::cpu, Target::cuda}) {
    if (!embedding_bag.has(on) || (on == Target::cuda && !test::why_no_cuda().empty())) continue;
    const Device device{on == Target::cuda ? DeviceType::cuda : DeviceType::cpu, 0};
    const Bags there{bags.indices.to(device), bags.offsets.to(device), {}};
    const Tensor one = Tensor::full({1, 1}, 1, bf16).to(device);
    Tensor y = one.clone(), dw = one.clone();
    embedding_bag.on(on)(one, there, y);
    EXPECT_EQ(y.item(), 512) << to_string(on);
    embedding_bag_backward.on(on)(one, there, dw);
    EXPECT_EQ(dw.item(), 512) << to_string(on);
  }
}

/// A matrix whose first columns have most elements, as those of frequent words have.
Bags skewed_bags(int64_t rows, int64_t columns) {
  const RandomStream random({.seed = 3, .purpose = Purpose::test});
  std::vector<int64_t> indices, offsets{0};
  std::vector<float> values;
  uint64_t draw = 0;
  for (int64_t n = 0; n < rows; ++n) {
    for (uint32_t left = random.below(draw++, 60); left > 0; --left) {
      const double u = random.uniform(draw++);
      indices.push_back(static_cast<int64_t>(u * u * u * static_cast<double>(columns)));
      values.push_back(random.normal(draw++));
    }
    offsets.push_back(static_cast<int64_t>(indices.size()));
  }
  return {integers(indices), integers(offsets), floats(values)};
}

TEST(EmbeddingBag, HasTheSameBitsForEveryNumberOfThreads) {
  const int64_t rows = 400, columns = 900;
  const Bags bags = skewed_bags(rows, columns);
  const RandomStream random({.seed = 4, .purpose = Purpose::test});
  const int before = thread_count();
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t features : {1, 10, 103, 200}) {
      SCOPED_TRACE(to_string(dtype) + ", features: " + std::to_string(features));
      const auto draw = [&](int64_t height) {
        const Tensor x = Tensor::empty({height, features});
        for (size_t i = 0; i < x.span<float>().size(); ++i) x.span<float>()[i] = random.normal(i);
        return x.to(dtype);
      };
      const Tensor weight = draw(columns), dy = draw(rows);
      std::vector<float> first_y, first_dw;
      for (const int threads : {1, 2, 3, 7}) {
        set_thread_count(threads);
        Tensor y = Tensor::empty_like(dy), dw = Tensor::empty_like(weight);
        embedding_bag(weight, bags, y);
        embedding_bag_backward(dy, bags, dw);
        if (threads == 1) {
          first_y = y.to_vector<float>();
          first_dw = dw.to_vector<float>();
        }
        EXPECT_EQ(y.to_vector<float>(), first_y) << "threads: " << threads;
        EXPECT_EQ(dw.to_vector<float>(), first_dw) << "threads: " << threads;
      }
    }
  set_thread_count(before);
}

struct WrongBags {
  std::vector<int64_t> indices, offsets;
  const char* sentence;
};

TEST(EmbeddingBag, NamesWrongIndicesAndOffsets) {
  const WrongBags table[] = {
      {{0, 4, 1}, {0, 1, 3}, "embedding_bag: element 1 has index 4, expected 0 to 3 for 4 columns"},
      {{0, 1, -1}, {0, 1, 3}, "embedding_bag: element 2 has index -1, expected 0 to 3 for 4 columns"},
      {{0, 1}, {0, 1, 3}, "embedding_bag: offsets from 0 to 3, expected from 0 to 2, the number of indices"},
      {{0, 1}, {1, 1, 2}, "embedding_bag: offsets from 1 to 2, expected from 0 to 2, the number of indices"},
      {{0, 1}, {0, 2, 1, 2}, "embedding_bag: offset 2 falls to 1, expected no less than the one before"},
      {{0, 1}, {0, -1, 2}, "embedding_bag: offset 1 falls to -1, expected no less than the one before"},
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [indices, offsets, sentence] : table) {
      const Bags bags{integers(indices), integers(offsets), {}};
      Tensor weight = Tensor::zeros({4, 2}, {.dtype = dtype}),
             y = Tensor::zeros({bags.offsets.numel() - 1, 2}, {.dtype = dtype});
      EXPECT_EQ(message_of<Error>([&] { embedding_bag(weight, bags, y); }), sentence);
      EXPECT_EQ(message_of<Error>([&] { embedding_bag_backward(y, bags, weight); }), sentence);
    }
}

class CudaEmbeddingBag : public testing::Test {
  void SetUp() override {
    if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(CudaEmbeddingBag, MarksTheRowOfAWrongIndex) {
  const Device cuda{DeviceType::cuda, 0};
  const Bags bags{integers({0, 1, 4, -1, 1}).to(cuda), integers({0, 1, 3, 4, 5}).to(cuda), {}};
  const Tensor weight = Tensor::full({4, 1}, 1, {.device = cuda}), dy = Tensor::full({4, 1}, 2, {.device = cuda});
  Tensor y = Tensor::empty({4, 1}, {.device = cuda}), dw = Tensor::empty({4, 1}, {.device = cuda});
  embedding_bag(weight, bags, y);
  const auto rows = y.to_vector<float>();
  EXPECT_EQ(rows[0], 1);
  EXPECT_TRUE(std::isnan(rows[1]));
  EXPECT_TRUE(std::isnan(rows[2]));
  EXPECT_EQ(rows[3], 1);
  embedding_bag_backward(dy, bags, dw);
  EXPECT_EQ(dw.to_vector<float>(), (std::vector<float>{2, 4, 0, 0}));
}

}  // namespace
}  // namespace tern::kernels
