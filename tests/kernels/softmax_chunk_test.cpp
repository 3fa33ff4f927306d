#include "tern/kernels/softmax_chunk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/values.h"

namespace tern::kernels {
namespace {

constexpr double kLeast = -std::numeric_limits<double>::infinity();

// Row 0 has the logits 0, log 2, log 5 and the labels 0 and 2; row 1 has 1000, 1000, 1000 and the label 1.
TEST(SoftmaxChunk, ChunksGiveTheLossOfAllClasses) {
  const double log2 = std::log(2.0), log5 = std::log(5.0), log8 = std::log(8.0), log3 = std::log(3.0);
  const Bags labels = {Tensor::from<int64_t>({3}, std::vector<int64_t>{0, 2, 1}),
                       Tensor::from<int64_t>({3}, std::vector<int64_t>{0, 2, 3}),
                       {}};
  const Tensor first = f64({2, 2}, {0, log2, 1000, 1000}), last = f64({2, 1}, {log5, 1000});
  Tensor maximum = f64({2}, {kLeast, kLeast}), sum = f64({2}, {0, 0}), hits = f64({2}, {0, 0});
  softmax_chunk(first, labels, 0, maximum, sum, hits);
  softmax_chunk(last, labels, 2, maximum, sum, hits);
  Tensor logsumexp = empty_f64({2}), loss = empty_f64({});
  softmax_chunk_loss(maximum, sum, hits, labels, logsumexp, loss);
  expect_values(logsumexp, {log8, 1000 + log3});
  expect_values(loss, {((log8 - log5 / 2) + log3) / 2});
  Tensor dz = empty_f64({2, 2});
  softmax_chunk_backward(logsumexp, labels, 0, f64({}, {2}), first, dz);
  expect_values(dz, {1.0 / 8 - 0.5, 2.0 / 8, 1.0 / 3, 1.0 / 3 - 1});
}

TEST(SoftmaxChunk, AFirstChunkOfImpossibleClassesAddsNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), log2 = std::log(2.0);
  const Bags labels = {integers({2, 2}), integers({0, 1, 2}), {}};
  for (const Target on : {Target::reference, Target::cpu}) {
    if (!softmax_chunk.has(on)) continue;
    SCOPED_TRACE(to_string(on));
    const auto f32 = [](const Shape& shape, const Values& values) { return f64(shape, values).to(DType::f32); };
    Tensor maximum = f32({2}, {kLeast, kLeast}), sum = f32({2}, {0, 0}), hits = f32({2}, {0, 0});
    softmax_chunk.on(on)(f32({2, 2}, {kLeast, kLeast, kLeast, nan}), labels, 0, maximum, sum, hits);
    EXPECT_EQ(maximum.to_vector<double>()[0], kLeast);
    EXPECT_EQ(sum.to_vector<double>()[0], 0);
    EXPECT_TRUE(std::isnan(sum.to_vector<double>()[1]));
    softmax_chunk.on(on)(f32({2, 2}, {log2, 0, 1, 2}), labels, 2, maximum, sum, hits);
    EXPECT_NEAR(maximum.to_vector<double>()[0], log2, 1e-6);
    EXPECT_NEAR(sum.to_vector<double>()[0], 1.5, 1e-6);
    EXPECT_TRUE(std::isnan(sum.to_vector<double>()[1]));
  }
}

TEST(TopClasses, KeepsTheBestOfAllChunksInOrder) {
  Tensor values = f64({1, 3}, {kLeast, kLeast, kLeast}), classes = Tensor::full({1, 3}, -1, {.dtype = DType::i64});
  top_classes(f64({1, 2}, {1, 5}), 0, values, classes);
  EXPECT_EQ(classes.to_vector<int64_t>(), (std::vector<int64_t>{1, 0, -1}));
  top_classes(f64({1, 3}, {5, 0, 7}), 2, values, classes);
  EXPECT_EQ(classes.to_vector<int64_t>(), (std::vector<int64_t>{4, 1, 2}));
  expect_values(values, {7, 5, 5});
}

}  // namespace
}  // namespace tern::kernels
