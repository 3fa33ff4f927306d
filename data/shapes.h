#pragma once

#include <cstdint>
#include <span>

#include "tern/data/dataset.h"

namespace tern {

inline constexpr int64_t kShapeKinds = 10;

/// Generated pictures of `side`×`side` pixels in colour: each one shape, turned, tinted and somewhere near the middle,
/// before a shaded and grainy ground. The label, index mod 10, is the kind: disc, ring, crescent, half disc, triangle,
/// square, bar, cross, pentagram or hexagram. Drawn as they are read: a pure function of seed, split, index and side,
/// the same bytes on every machine. Neither colour nor place tells kinds apart, which puts them beyond a linear
/// classifier.
class Shapes final : public Dataset {
 public:
  /// 20,000 pictures to train on or 4,000 to test on; above 64 pixels a tenth of that.
  Shapes(uint64_t seed, Split split, int64_t side);

  int64_t size() const override;
  ImageSpec spec() const override;
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;

 private:
  uint64_t seed_;
  Split split_;
  int64_t side_;
};

}  // namespace tern
