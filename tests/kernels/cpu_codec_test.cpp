#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/core/random.h"
#include "tern/kernels/cpu/draw_keys.h"
#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/hadamard.h"

namespace tern::cpu::simd {
namespace {

std::vector<const CodecLoops*> runnable() {
  std::vector<const CodecLoops*> all;
  for (const VectorSet set : kVectorSets) {
    if (set > vector_set()) break;
    const NarrowerVectors narrower(set);
    all.push_back(kernels().codec);
  }
  return all;
}

/// There are a thousand chunks, so that some draws are undecided.
TEST(CpuCodec, EveryInstructionSetGivesTheSameBits) {
  const RandomStream stream({.seed = 3, .purpose = Purpose::test});
  DrawKeys keys{};
  for (uint32_t i = 0; i < 20; ++i) keys.key[i / 2][i % 2] = stream.word(i);
  float g[kChunk], factors[kChunk];
  for (const int bits : {2, 3, 4, 5, 8, 9, 16}) {
    const float levels = static_cast<float>((1 << (bits - 1)) - 1);
    int undecided = 0;
    for (uint32_t chunk = 0; chunk < 1000; ++chunk) {
      for (uint32_t i = 0; i < kChunk; ++i) {
        g[i] = stream.normal(chunk * kChunk + i);
        factors[i] = 65536 * levels / (1 + stream.uniform(i));
      }
      std::vector<std::vector<uint32_t>> planes;
      std::vector<std::vector<float>> values;
      std::vector<std::vector<double>> sums;
      std::vector<std::vector<uint32_t>> ties;
      for (const CodecLoops* loop : runnable()) {
        planes.emplace_back(static_cast<size_t>(8 * bits));
        ties.emplace_back(8);
        loop->quantize(keys, 32 * chunk, g, factors, 65536 * levels, bits, planes.back().data(), ties.back().data());
        values.emplace_back(kGroup, 0.5f);
        loop->dequantize_add(planes.back().data(), bits, g, values.back().data());
        sums.emplace_back(7);
        sums.back()[6] = static_cast<double>(loop->largest(g, 200 + chunk % 50));
        loop->statistics(g, 200 + chunk % 50, sums.back()[0], sums.back()[1], sums.back()[2]);
        int64_t negatives;
        loop->sign_sums(g, 200 + chunk % 50, sums.back()[3], sums.back()[4], negatives);
        sums.back()[5] = static_cast<double>(negatives);
      }
      for (size_t i = 1; i < planes.size(); ++i) {
        EXPECT_EQ(planes[i], planes[0]);
        EXPECT_EQ(values[i], values[0]);
        EXPECT_EQ(sums[i], sums[0]);
        EXPECT_EQ(ties[i], ties[0]);
      }
      for (const uint32_t word : ties[0]) undecided += std::popcount(word);
    }
    EXPECT_GT(undecided, 0) << bits << " bits";
  }
}

TEST(CpuCodec, TheLargestMagnitudeIsFoundWhereverItIsAndNaNIsLarger) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  for (const CodecLoops* loop : runnable())
    for (int64_t count = 0; count <= 3 * kGroup; ++count)
      for (int64_t at = 0; at < count; ++at) {
        std::vector<float> x(static_cast<size_t>(count), 0.5f);
        x[static_cast<size_t>(at)] = -2;
        EXPECT_EQ(loop->largest(x.data(), count), 2) << at << " of " << count;
        x[static_cast<size_t>(at)] = -kInfinity;
        EXPECT_EQ(loop->largest(x.data(), count), kInfinity) << at << " of " << count;
        x.front() = kNaN;
        EXPECT_TRUE(std::isnan(loop->largest(x.data(), count))) << at << " of " << count;
      }
}

TEST(CpuCodec, EveryInstructionSetFindsTheSamePlaces) {
  constexpr size_t kCount = 4 * kGroup;
  const RandomStream stream({.seed = 4, .purpose = Purpose::test});
  std::vector<uint32_t> magnitudes(kCount);
  for (size_t i = 0; i < kCount; ++i) magnitudes[i] = stream.word(i) >> 1;
  for (const uint32_t least : {0u, 1u << 29, magnitudes[17], 0x7fffffffu}) {
    std::vector<uint32_t> expected, expected_magnitudes;
    for (uint32_t i = 0; i < kCount; ++i) {
      if (magnitudes[i] < least) continue;
      expected.push_back(i);
      expected_magnitudes.push_back(magnitudes[i]);
    }
    for (const CodecLoops* loop : runnable()) {
      std::vector<uint32_t> places(kCount + kLanes), chosen(kCount + kLanes);
      const auto found = static_cast<size_t>(
          loop->places_at_least(magnitudes.data(), int64_t{kCount}, least, places.data(), chosen.data()));
      places.resize(found);
      chosen.resize(found);
      EXPECT_EQ(places, expected) << least;
      EXPECT_EQ(chosen, expected_magnitudes) << least;
    }
  }
}

/// The smallest bucket of the loops, one with an odd number of stages after those within a vector, and the largest.
TEST(CpuCodec, EveryInstructionSetRotatesToTheSameBits) {
  const RandomStream stream({.seed = 3, .purpose = Purpose::test});
  const DrawKeys keys = draw_keys(stream);
  for (const int64_t count : {32, 64, 128, 4096})
    for (int bits = 1; bits <= kernels::kMostHadamardBits; ++bits) {
      const auto levels = kernels::normal_levels(bits);
      std::vector<float> g(static_cast<size_t>(count));
      for (size_t i = 0; i < g.size(); ++i) g[i] = stream.normal(i);
      std::vector<std::vector<float>> rotated, added;
      std::vector<std::vector<uint32_t>> planes;
      std::vector<double> products;
      for (const CodecLoops* loop : runnable()) {
        rotated.emplace_back(g.size());
        loop->rotate(keys, 7, g.data(), 0.3f, count, rotated.back().data());
        planes.emplace_back(static_cast<size_t>(bits * count / 32));
        products.push_back(
            loop->nearest_levels(rotated.back().data(), count, levels.data(), bits, planes.back().data(), g.data()));
        CodedBucket bucket = {planes.back().data(), count, levels.data(), bits, 0.7f, nullptr, 1, nullptr};
        for (const float* from : {static_cast<const float*>(nullptr), static_cast<const float*>(g.data())}) {
          added.emplace_back(g.size());
          bucket.from = from;
          bucket.factor = 0.3f;
          bucket.to = added.back().data();
          loop->add_levels(keys, 7, bucket);
        }
      }
      for (size_t i = 1; i < planes.size(); ++i) {
        EXPECT_EQ(rotated[i], rotated[0]) << count;
        EXPECT_EQ(planes[i], planes[0]) << count;
        EXPECT_EQ(products[i], products[0]) << count;
        EXPECT_EQ(added[2 * i], added[0]) << count;
        EXPECT_EQ(added[2 * i + 1], added[1]) << count;
      }
    }
}

}  // namespace
}  // namespace tern::cpu::simd
