#include "tern/data/sampler.h"

#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/random.h"

namespace tern {
namespace {

/// Fisher–Yates from the last place down.
void shuffle_in_place(std::vector<int64_t>& order, const RandomStream& random) {
  for (size_t i = order.size(); i > 1; --i) {
    const auto chosen = random.below(i - 1, static_cast<uint32_t>(i));
    std::swap(order[i - 1], order[chosen]);
  }
}

}  // namespace

int64_t Sampler::share() const {
  check(0 <= rank && rank < ranks, "sampler: rank ", rank, " of ", ranks);
  return size / ranks + (rank < size % ranks ? 1 : 0);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  check(size < int64_t{1} << 32, "sampler: ", size, " examples, expected less than 2^32");
  std::vector<int64_t> own(static_cast<size_t>(share()));
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  if (shuffle)
    shuffle_in_place(all,
                     RandomStream({.seed = seed, .purpose = Purpose::shuffle, .step = static_cast<uint32_t>(epoch)}));
  for (size_t i = 0; i < own.size(); ++i) own[i] = all[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)];
  return own;
}

}  // namespace tern
