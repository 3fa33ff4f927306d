#include "tern/dist/methods/neuron_deal.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/dist/methods/subnet_job.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

/// A tensor that has indices of neurons along a dimension.
struct NeuronCase {
  const char* name;
  Shape whole;  ///< with 7 neurons
  int dimension;
  int64_t block;
};

/// The part of a whole whose element i is i.
Tensor part(const NeuronCase& c, const std::vector<int64_t>& neurons) {
  Shape shape = c.whole;
  shape[c.dimension] = std::ssize(neurons) * c.block;
  const int64_t inner = c.whole.numel_from(c.dimension + 1) * c.block, outer = c.whole.numel() / (7 * inner);
  Tensor x = Tensor::empty(shape);
  float* at = x.data<float>();
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t neuron : neurons)
      for (int64_t i = 0; i < inner; ++i) *at++ = static_cast<float>((o * 7 + neuron) * inner + i);
  return x;
}

TEST(NeuronDeal, GivesEachRankTheElementsOfItsNeurons) {
  const NeuronLists from = {{0, 1}, {2, 3}, {4, 5, 6}}, to = {{3, 6}, {0, 2}, {1, 4, 5}};
  // The last two are larger than a piece, so that they travel in several.
  for (const NeuronCase& c :
       {NeuronCase{"bias", {7}, 0, 1}, NeuronCase{"rows", {7, 5, 2}, 0, 1}, NeuronCase{"columns", {4, 7}, 1, 1},
        NeuronCase{"blocks", {3, 7 * 6}, 1, 6}, NeuronCase{"filters", {2, 7, 3, 3}, 1, 1},
        NeuronCase{"wide", {7, 1'600'000}, 0, 1}, NeuronCase{"tall", {1'600'000, 7}, 1, 1}})
    on_all(3, [&](Communicator& communicator) {
      const auto rank = static_cast<size_t>(communicator.rank());
      const Tensor x = part(c, from[rank]);
      NeuronDeal(communicator, from, to).move(x, c.dimension, c.block, Account::payload);
      const Tensor expected = part(c, to[rank]);
      EXPECT_TRUE(std::ranges::equal(x.span<float>(), expected.span<float>())) << c.name;
      NeuronDeal(communicator, to, from).move(x, c.dimension, c.block, Account::payload);
      EXPECT_TRUE(std::ranges::equal(x.span<float>(), part(c, from[rank]).span<float>())) << c.name;
      return Values();
    });
}

TEST(NeuronDeal, RefusesListsThatAreNoDeal) {
  on_all(2, [](Communicator& c) {
    const auto refusal = [&](const NeuronLists& from, const NeuronLists& to) {
      return message_of<Error>([&] { NeuronDeal(c, from, to); });
    };
    EXPECT_NE(refusal({{0, 1}, {2}}, {{0}, {1, 2}}).find("rank 0 has 2 neurons before and 1 afterwards"),
              std::string::npos);
    EXPECT_NE(refusal({{0}, {1}}, {{0}, {0}}).find("neuron 0 of 2 is unknown or belongs to two ranks"),
              std::string::npos);
    return Values();
  });
}

}  // namespace
}  // namespace tern::test
