#include "tern/dist/methods/demo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;

constexpr Sgd::Options kDemoSgd = {.lr = 0.01, .weight_decay = 0.02};

Results demo(Transports transports, const DeMo::Options& options, int64_t steps) {
  return train_on_ranks(std::move(transports), [&](const RankTraining& rank) {
    Sgd local(rank.model.parameters(), kDemoSgd);
    DeMo optimizer(rank.model, local, rank.communicator, options);
    for (int64_t step = 0; step < steps; ++step)
      small_step(rank.model, local, optimizer, step, rank.communicator.rank(), rank.communicator.size());
  });
}

/// The DCT-II of x [rows, columns] by its definition, in f64; with `inverse`, the DCT-III.
std::vector<double> cosine_transform(const std::vector<double>& x, size_t rows, size_t columns, bool inverse) {
  const auto c = [inverse](size_t k, size_t j, size_t n) {
    if (inverse) std::swap(k, j);
    return std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
           std::cos(std::numbers::pi * static_cast<double>((2 * j + 1) * k) / static_cast<double>(2 * n));
  };
  std::vector<double> y(x.size());
  for (size_t k = 0; k < rows; ++k)
    for (size_t l = 0; l < columns; ++l)
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j)
          y[k * columns + l] += c(k, i, rows) * x[i * columns + j] * c(l, j, columns);
  return y;
}

TEST(BlockDct, TransformEachBlockByTheDefinition) {
  BlockDct dct(4, 4);
  Tensor x = gaussian({8, 6});  // tiles of 4 × 3
  const Tensor before = x.clone();
  dct.transform(x);
  for (size_t row = 0; row < 8; row += 4)
    for (size_t column = 0; column < 6; column += 3) {
      std::vector<double> block;
      for (size_t i = 0; i < 12; ++i) block.push_back(before.span<float>()[(row + i / 3) * 6 + column + i % 3]);
      const auto expected = cosine_transform(block, 4, 3, false);
      for (size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(x.span<float>()[(row + i / 3) * 6 + column + i % 3], expected[i], 1e-5);
    }
  dct.restore(x);
  EXPECT_LT(squared_distance(x, before), 1e-10);
}

TEST(BlockDct, KeepTheNormOfAnyShapeAndUndoThemselves) {
  BlockDct dct(64, 64);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{100}, Shape{64}, Shape{67, 3}, Shape{20, 6, 5, 5}, Shape{0}}) {
    Tensor x = gaussian(shape);
    const Tensor before = x.clone();
    dct.transform(x);
    EXPECT_NEAR(squared_norm(x), squared_norm(before), 1e-4 * (1 + squared_norm(before))) << to_string(shape);
    dct.restore(x);
    EXPECT_LT(squared_distance(x, before), 1e-8) << to_string(shape);
  }
}

TEST(CudaBlockDct, IsTheCpus) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device cuda{DeviceType::cuda, 0};
  BlockDct dct(64, 64);  // one for both devices
  for (const Shape& shape : {Shape{100}, Shape{67, 3}, Shape{128, 96}, Shape{20, 6, 5, 5}, Shape{0}}) {
    Tensor here = gaussian(shape), there = here.to(cuda);
    const Tensor before = here.clone();
    dct.transform(here);
    dct.transform(there);
    EXPECT_EQ(there.device(), cuda);
    EXPECT_LT(squared_distance(there.to(Device{}), here), 1e-8) << to_string(shape);
    dct.restore(there);
    EXPECT_LT(squared_distance(there.to(Device{}), before), 1e-8) << to_string(shape);
  }
}

/// The gradient of the model's first weight by the batch of `rank` of `ranks`.
std::vector<double> first_gradient(SmallNet& model, int64_t step, int rank, int ranks) {
  SmallNet copy;
  copy.initialize(1);
  copy.load_state(model.state());
  Sgd none(copy.parameters(), {.lr = 0});
  DistributedOptimizer alone(copy, none);
  small_step(copy, none, alone, step, rank, ranks);
  return copy.parameters()[0].parameter->gradient().to_vector<double>();
}

// From the definition, with each rank's d and its transform in f64. A coefficient's mean is over the ranks that sent
// it. SmallNet's first weight is one tile of 33 × 20.
class DeMoByHand : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DeMoByHand, testing::Values(1, 3));

TEST_P(DeMoByHand, SendsTheStrongestFrequenciesAndStepsByTheSignOfTheirMean) {
  constexpr size_t kRows = 33, kColumns = 20, kKeep = 32;
  constexpr double kDecay = 0.9;
  const int ranks = GetParam();
  expect_on_ranks(ranks, [&](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kDemoSgd);
    DeMo optimizer(model, local, c, {.keep = kKeep, .decay = kDecay});
    std::vector<std::vector<double>> all(static_cast<size_t>(ranks), std::vector<double>(kRows * kColumns));
    for (int64_t step = 0; step < 4; ++step) {
      const auto weight = model.parameters()[0].parameter->value().to_vector<double>();
      std::vector<double> sums(kRows * kColumns), senders(kRows * kColumns);
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<double>& d = all[static_cast<size_t>(rank)];
        const auto g = first_gradient(model, step, rank, ranks);
        for (size_t i = 0; i < d.size(); ++i) d[i] = kDecay * d[i] + kDemoSgd.lr * g[i];
        auto kept = cosine_transform(d, kRows, kColumns, false);
        auto magnitudes = kept;
        for (double& m : magnitudes) m = std::abs(m);
        std::ranges::sort(magnitudes, std::greater());
        for (double& coefficient : kept)
          if (std::abs(coefficient) < magnitudes[kKeep - 1]) coefficient = 0;
        const auto sent = cosine_transform(kept, kRows, kColumns, true);
        for (size_t i = 0; i < d.size(); ++i) {
          d[i] -= sent[i];
          sums[i] += kept[i];
          senders[i] += kept[i] != 0 ? 1 : 0;
        }
      }
      for (size_t i = 0; i < sums.size(); ++i) sums[i] /= std::max(1.0, senders[i]);
      const auto mean = cosine_transform(sums, kRows, kColumns, true);

      small_step(model, local, optimizer, step, c.rank(), ranks);
      const auto found = model.parameters()[0].parameter->value().to_vector<double>();
      for (size_t i = 0; i < mean.size(); ++i) {
        const double sign = mean[i] > 0 ? 1 : -1;
        const double expected = weight[i] * (1 - kDemoSgd.lr * kDemoSgd.weight_decay) - kDemoSgd.lr * sign;
        EXPECT_NEAR(found[i], expected, 1e-6) << i;
      }
    }
  });
}

TEST(DeMo, HasTheSameBitsOnAllRanksAndTransports) {
  const Results found = demo(make_in_process(3), {.check_every = 1}, 5);
  EXPECT_EQ(found, Results(3, found[0]));
  EXPECT_EQ(demo(make_tcp_job(3, {}), {.check_every = 1}, 5), found);
}

TEST(DeMo, SendsPlacesAndFloatsOfTheKeptCoefficients) {
  train_on_ranks(make_in_process(3), [](const RankTraining& rank) {
    Sgd local(rank.model.parameters(), kDemoSgd);
    DeMo optimizer(rank.model, local, rank.communicator, {});
    small_step(rank.model, local, optimizer, 0, rank.communicator.rank(), 3);
    // Blocks of 33 × 20, 33, 5 × 33 and 5 elements, and places of 10, 6, 8 and 3 bits.
    const uint64_t bytes = 32 * (10 + 32) / 8 + 32 * (6 + 32) / 8 + 32 * (8 + 32) / 8 + (2 + 5 * 4);
    EXPECT_EQ(rank.communicator.traffic().sent_payload, 2 * bytes);
  });
}

TEST(DeMo, GoesOnFromACheckpointAsIfNeverStopped) {
  const Results undisturbed = demo(make_in_process(2), {}, 7);
  const Results resumed = train_on_ranks(make_in_process(2), [](const RankTraining& rank) {
    Sgd local(rank.model.parameters(), kDemoSgd);
    const auto steps = [&](DeMo& optimizer, int64_t begin, int64_t end) {
      for (int64_t step = begin; step < end; ++step)
        small_step(rank.model, local, optimizer, step, rank.communicator.rank(), 2);
    };
    DeMo before(rank.model, local, rank.communicator, {});
    steps(before, 0, 3);
    DeMo after(rank.model, local, rank.communicator, {});
    after.load_state(before.state(), 3);
    steps(after, 3, 7);
  });
  EXPECT_EQ(resumed, undisturbed);
}

TEST(DeMo, RefusesOptionsOutOfRange) {
  expect_on_ranks(1, [](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kDemoSgd);
    EXPECT_EQ(message_of<InputError>([&] { DeMo(model, local, c, {.keep = 0}); }),
              "demo: 0 coefficients, expected 1 to 4096, as many as a block has");
    EXPECT_NE(message_of<InputError>([&] { DeMo(model, local, c, {.keep = 4097}); }).find("demo: 4097 coefficients"),
              std::string::npos);
    EXPECT_EQ(message_of<InputError>([&] { DeMo(model, local, c, {.decay = 0}); }),
              "demo: a decay of 0, expected (0, 1]");
  });
}

TEST(DeMo, RefusesAnOptimizerThatKeepsAState) {
  expect_on_ranks(1, [](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd momentum(model.parameters(), kSmallSgd);
    Adam adam(model.parameters(), {});
    const auto refusal = [&](Optimizer& local) { return message_of<InputError>([&] { DeMo(model, local, c, {}); }); };
    const std::string expected = "', expected an Sgd without momentum, because demo has a momentum of its own";
    EXPECT_EQ(refusal(momentum), "demo: the local optimizer keeps '" + momentum.state().begin()->first + expected);
    EXPECT_EQ(refusal(adam), "demo: the local optimizer keeps '" + adam.state().begin()->first + expected);
  });
}

TEST(DeMo, RefusesAStateWithoutResiduals) {
  expect_on_ranks(1, [](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kDemoSgd);
    DeMo demo(model, local, c, {});
    demo.load_state({}, 0);
    EXPECT_EQ(message_of<InputError>([&] { demo.load_state({}, 3); }),
              "the codec's state has no residual of 'last.bias', expected one after a round");
  });
}

}  // namespace
}  // namespace tern::test
