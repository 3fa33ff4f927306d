#include <gtest/gtest.h>

#include <limits>

#include "tern/core/parallel.h"
#include "tests/dist/exchange/exchange_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

/// The means of `steps` steps of an exchange of floats on rank 0. If `break_after` is above 0, a second exchange goes
/// on from the state of the first one after that step.
std::vector<std::vector<float>> exchange_steps(int ranks, const std::string& exchange, const Shape& shape,
                                               int64_t steps, int64_t break_after = 0) {
  std::vector<std::vector<float>> means;
  const auto errors = with_communicators(make_in_process(ranks), [&](Communicator& c) {
    const auto none = make_codec("none");
    auto way = make_exchange(exchange, *none, c);
    for (int64_t step = 0; step < steps; ++step) {
      if (break_after > 0 && step == break_after) {
        const StateDict state = way->state();
        way = make_exchange(exchange, *none, c);
        way->load_state(state);
      }
      const auto result = way->start(gradients_of(c.rank(), {shape}, static_cast<uint32_t>(step)))();
      if (c.rank() == 0) means.push_back(result[0].to_vector<float>());
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<size_t>(ranks)));
  return means;
}

/// The same gradient in every step: a matrix of rank 2, or that plus noise.
FusedGradients constant_matrix(int rank, uint32_t step, bool noisy) {
  constexpr int64_t kRows = 40, kColumns = 60;
  const Tensor a = gaussian({kRows, 2}, 50), b = gaussian({2, kColumns}, 51 + static_cast<uint64_t>(rank)),
               noise = gaussian({kRows, kColumns}, 70);
  Tensor m = Tensor::empty({kRows, kColumns});
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      float value = noisy ? noise.data<float>()[i * kColumns + j] : 0;
      for (int64_t k = 0; k < 2; ++k) value += a.data<float>()[i * 2 + k] * b.data<float>()[k * kColumns + j];
      m.data<float>()[i * kColumns + j] = value;
    }
  return {{{"matrix", {.seed = 7, .step = step}}, m}};
}

// A product with a wide factor has other bits if another number of threads makes it.
TEST(PowerSgd, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const int rank : {2, 16}) {
    std::vector<std::vector<float>> means(2);
    const auto errors = with_communicators(make_in_process(2), [&](Communicator& c) {
      set_thread_count(c.rank() == 0 ? 1 : 4);
      const auto none = make_codec("none");
      const auto way = make_exchange(join({"powersgd:rank=", rank}), *none, c);
      means[c.rank()] = way->start(gradients_of(c.rank(), {{256, 2304}}))()[0].to_vector<float>();
      EXPECT_EQ(thread_count(), c.rank() == 0 ? 1 : 4);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
    EXPECT_TRUE(means[0] == means[1]) << "rank " << rank;
  }
}

TEST(PowerSgd, GivesTheMeanOfMatricesOfItsRankAtOnce) {
  expect_on_ranks(3, [](Communicator& c) {
    const auto none = make_codec("none");
    const Tensor found = make_exchange("powersgd:rank=2", *none, c)->start(constant_matrix(c.rank(), 0, false))()[0];
    const Tensor mean = make_exchange("ring", *none, c)->start(constant_matrix(c.rank(), 0, false))()[0];
    EXPECT_LT(squared_distance(found, mean), 1e-9 * squared_norm(mean));
  });
}

// Error feedback: over many steps the sum of the means comes near to the sum of the gradients, of any rank.
TEST(PowerSgd, BringsLaterWhatAStepLeavesOut) {
  expect_on_ranks(2, [](Communicator& c) {
    const auto none = make_codec("none");
    const auto power = make_exchange("powersgd:rank=2", *none, c), ring = make_exchange("ring", *none, c);
    const Tensor mean = ring->start(constant_matrix(c.rank(), 0, true))()[0];
    Tensor sum = Tensor::zeros(mean.shape());
    double first = 0;
    constexpr int kSteps = 150;
    for (uint32_t step = 0; step < kSteps; ++step) {
      const Tensor each = power->start(constant_matrix(c.rank(), step, true))()[0];
      if (step == 0) first = squared_distance(each, mean) / squared_norm(mean);
      for (size_t i = 0; i < sum.span<float>().size(); ++i) sum.span<float>()[i] += each.span<float>()[i] / kSteps;
    }
    EXPECT_GT(first, 0.1);
    EXPECT_LT(squared_distance(sum, mean), 0.02 * squared_norm(mean));
  });
}

TEST(PowerSgd, SendsWhatItsFormulaSays) {
  // LeNet's first fully connected layer: 500 × 2450. 8k(n0 + n1)(R-1)/R bytes.
  const auto results = exchange_once(transport_kinds()[0], 4, "powersgd:rank=2", "none", {{500, 2450}});
  for (const Exchanged& result : results) EXPECT_EQ(result.traffic.sent_payload, 35400u);
  // A vector travels as floats, and so does a matrix of which the product would not save a half.
  const auto floats = exchange_once(transport_kinds()[0], 4, "powersgd:rank=2", "none", {{800}, {8, 7}});
  for (const Exchanged& result : floats) EXPECT_EQ(result.traffic.sent_payload, 2u * 3 * 4 * (800 + 56) / 4);
}

TEST(PowerSgd, BeginsWithFloatsAndGoesOnFromItsState) {
  const Shape shape = {30, 5, 3, 3};
  const auto ring = exchange_steps(3, "ring", shape, 2), late = exchange_steps(3, "powersgd:start=2", shape, 3);
  EXPECT_EQ(late[0], ring[0]);
  EXPECT_EQ(late[1], ring[1]);
  const auto whole = exchange_steps(3, "powersgd:rank=3", shape, 6);
  EXPECT_EQ(exchange_steps(3, "powersgd:rank=3", shape, 6, 3), whole);
}

TEST(PowerSgd, StaysFiniteForGradientsOfZero) {
  expect_on_ranks(2, [](Communicator& c) {
    const auto none = make_codec("none");
    const auto power = make_exchange("powersgd", *none, c);
    for (uint32_t step = 0; step < 2; ++step) {
      const FusedGradients zero = {{{"w", {.step = step}}, Tensor::zeros({20, 20})}};
      EXPECT_EQ(squared_norm(power->start(zero)()[0]), 0);
    }
    const Tensor found = power->start(constant_matrix(0, 2, false))()[0];
    EXPECT_GT(squared_norm(found), 0);
  });
}

TEST(PowerSgd, RefusesNaNAndInfinityByTheTensorsNameAndKeepsNothingOfThem) {
  const auto errors = with_communicators(make_in_process(1), [](Communicator& c) {
    const auto none = make_codec("none");
    const auto way = make_exchange("powersgd", *none, c);
    way->start(gradients_of(0, {{40, 60}}))();
    const std::vector<float> before = way->state().begin()->second.to_vector<float>();
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      FusedGradients message = gradients_of(0, {{40, 60}}, 1);
      message[0].gradient.data<float>()[777] = bad;
      const std::string expected = "gradient of '" + message[0].tag.name + "' has NaN or infinite elements";
      EXPECT_EQ(message_of<InputError>([&] { way->start(message); }).substr(0, expected.size()), expected);
    }
    EXPECT_EQ(way->state().begin()->second.to_vector<float>(), before);
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

}  // namespace
}  // namespace tern::test
