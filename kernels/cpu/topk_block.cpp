#include "tern/kernels/topk_block.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/topk_block_arithmetic.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

constexpr int64_t kBlocks = 4;  // the least number of blocks that a thread encodes

/// Writes fields of bits without gaps, the highest bit of each first.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* to) : to_(to) {}

  /// Writes the lowest `count` bits of `value`, which has no other bits. `count` is at most 24.
  void write(uint32_t value, int count) {
    waiting_ = waiting_ << count | value;
    for (count_ += count; count_ >= 8; count_ -= 8) *to_++ = static_cast<uint8_t>(waiting_ >> (count_ - 8));
  }
  /// Fills the last byte with zeros. Returns the byte behind it.
  uint8_t* finish() {
    if (count_ > 0) write(0, 8 - count_);
    return to_;
  }

 private:
  uint8_t* to_;
  uint64_t waiting_ = 0;  // its lowest `count_` bits, fewer than 8
  int count_ = 0;
};

int64_t rounded_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// How far the next block begins behind this one, to prefetch its rows; 0 if there is no need. The processor cannot
/// guess the place of a tile's next row.
int64_t prefetch_ahead(const BlockGrid& grid, int64_t block) {
  return grid.tile_rows > 1 && block + 1 < grid.count() ? grid.at(block + 1, 0) - grid.at(block, 0) : 0;
}
constexpr int64_t kPrefetched = 64 / sizeof(float);

/// Finds the largest elements of blocks, one block after another.
class LargestOfBlock {
 public:
  /// The places of the k elements of largest magnitude, as `largest_places` has them, until the next call. Zeros that
  /// fill the last set come after all elements, so that they are not among the k.
  std::span<const uint32_t> operator()(const BlockGrid& grid, const float* g, int64_t block, int64_t k) {
    const int64_t n = grid.elements(block), whole = rounded_up(n, kSet * 2);
    magnitudes_.resize(static_cast<size_t>(whole));
    std::fill(magnitudes_.begin() + n, magnitudes_.end(), 0u);
    load(grid, g, block);
    for (auto* const room : {&places_, &candidates_})
      room->resize(std::max(room->size(), static_cast<size_t>(whole + simd::kLanes)));
    const int64_t found = simd::kernels().codec->places_at_least(magnitudes_.data(), whole, reached_by(k),
                                                                 places_.data(), candidates_.data());
    return keep(found, k);
  }

 private:
  static constexpr int64_t kSet = 16;
  static_assert(2 * kSet == simd::kGroup);

  /// Reads the block, and prefetches the next one.
  void load(const BlockGrid& grid, const float* g, int64_t block) {
    const int64_t n = grid.elements(block), width = grid.width(block), columns = grid.columns,
                  ahead = prefetch_ahead(grid, block);
    const float* const from = g + grid.at(block, 0);
    uint32_t* const to = magnitudes_.data();
    vectorized([=] {
      for (int64_t i = 0, row = 0; i < n; i += width, row += columns) {
        for (int64_t j = 0; j < width; j += kPrefetched) __builtin_prefetch(from + row + ahead + j);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[i + j] = magnitude_bits(from[row + j]);
      }
    });
  }

  /// A magnitude that at least k elements reach: the elements are in sets of kSet, and the largest of each of k sets
  /// reaches it. It is mostly not much below the k-th largest magnitude, and 0 if there are fewer sets. That of the
  /// last block mostly serves this one too, because it is one that somewhat more than k sets reached.
  uint32_t reached_by(int64_t k) {
    constexpr uint32_t kLastBit = 1u << 18;  // of the exponent and 5 bits of the mantissa
    const int64_t sets = std::ssize(magnitudes_) / kSet, wanted = std::min(k + k / 4, sets);
    if (k > sets) return 0;
    maxima_.resize(static_cast<size_t>(sets));
    const uint32_t* const from = magnitudes_.data();
    uint32_t *const maxima = maxima_.data(), *const reached = &reached_;
    vectorized([=] {
#pragma omp simd
      for (int64_t i = 0; i < sets; ++i) {
        auto largest = static_cast<int32_t>(from[i]);
        for (int64_t row = 1; row < kSet; ++row) {
          const auto next = static_cast<int32_t>(from[row * sets + i]);
          largest = largest > next ? largest : next;
        }
        maxima[i] = static_cast<uint32_t>(largest);
      }
      const auto count = [=](uint32_t bound) {
        int32_t found = 0;
#pragma omp simd reduction(+ : found)
        for (int64_t i = 0; i < sets; ++i)
          found += static_cast<int32_t>(maxima[i]) >= static_cast<int32_t>(bound) ? 1 : 0;
        return int64_t{found};
      };
      const int64_t now = count(*reached);
      if (now >= k && now <= 2 * k) return;
      uint32_t least = 0;
      for (uint32_t bit = 1u << 30; bit >= kLastBit; bit >>= 1)
        if (count(least | bit) >= wanted) least |= bit;
      *reached = least;
    });
    return reached_;
  }

  /// Keeps k of the first n of `places_`, those of the largest magnitudes.
  std::span<const uint32_t> keep(int64_t n, int64_t k) {
    const int64_t whole = rounded_up(n, kSet);
    std::fill(candidates_.begin() + n, candidates_.begin() + whole, 0u);
    uint32_t least = 0;  // a magnitude that the k largest reach, and others only if they equal the k-th
    int64_t above = 0;
    const uint32_t* const from = candidates_.data();
    uint32_t* const to = &least;
    int64_t* const more = &above;
    vectorized([=] {
      const auto count = [=](uint32_t bound) {
        int32_t reached = 0;
#pragma omp simd reduction(+ : reached)
        for (int64_t i = 0; i < whole; ++i)
          reached += static_cast<int32_t>(from[i]) >= static_cast<int32_t>(bound) ? 1 : 0;
        return int64_t{reached};
      };
      uint32_t found = 0;
      for (uint32_t bit = 1u << 30; bit != 0; bit >>= 1) {
        const int64_t reached = count(found | bit);
        if (reached >= k) found |= bit;
        if (reached == k) break;
      }
      *to = found;
      *more = found < 0x7fffffff ? count(found + 1) : 0;
    });
    int64_t equals = k - above;
    size_t kept = 0;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const int is_above = from[i] > least, is_equal = from[i] == least;
      places_[kept] = places_[i];
      kept += static_cast<size_t>(is_above | (is_equal & (equals > 0)));  // no branch, because nobody can guess it
      equals -= is_equal;
    }
    return {places_.data(), kept};
  }

  std::vector<uint32_t> magnitudes_, maxima_;
  uint32_t reached_ = 0;                       // what `reached_by` found last
  std::vector<uint32_t> places_, candidates_;  // elements that may be among the largest, and their magnitudes
};

/// Writes the places and values of the kept elements of all blocks.
void choose(const TopKBlockLayout& layout, const float* g, uint32_t* places, float* values) {
  const BlockGrid& grid = layout.grid;
  parallel_for(0, grid.count(), kBlocks, [&](int64_t begin, int64_t end) {
    LargestOfBlock largest;
    for (int64_t block = begin; block < end; ++block) {
      const float* const first = g + grid.at(block, 0);
      const auto width = static_cast<uint32_t>(grid.width(block));
      int64_t next = layout.kept_before(block);
      for (const uint32_t place : largest(grid, g, block, layout.kept(block))) {
        places[next] = place;
        values[next++] = first[place / width * grid.columns + place % width];
      }
    }
  });
}

void topk_block_encode(const Tensor& g, const TopKBlockOptions& options, Tensor& codes, Tensor& broken) {
  const TopKBlockLayout layout(g.shape(), options);
  check_topk_block_encode(g, layout, codes, broken);
  if (g.numel() == 0) return;
  const auto kept = static_cast<size_t>(layout.kept());
  std::vector<uint32_t> places(kept);
  std::vector<float> values(kept);
  choose(layout, g.data<float>(), places.data(), values.data());

  auto* next = codes.data<uint8_t>();
  std::vector<uint8_t> value_codes(layout.coded_values ? kept : 0);
  bool is_finite = std::ranges::all_of(values, [](float value) { return magnitude_bits(value) < kInfinityBits; });
  if (layout.coded_values) {
    const ValueTable table = make_value_table(values, value_codes.data());
    is_finite &= table.is_finite();
    std::memcpy(next, &table, sizeof table);
    next += sizeof table;
  }
  if (!is_finite) *broken.data<float>() = 1;
  FieldWriter fields(next);
  for (int64_t block = 0; block < layout.grid.count(); ++block) {
    const int bits = layout.place_bits(block);
    const uint32_t* const first = places.data() + layout.kept_before(block);
    for (int64_t i = 0; i < layout.kept(block); ++i) fields.write(first[i], bits);
  }
  next = fields.finish();
  if (!layout.coded_values) {
    std::memcpy(next, values.data(), sizeof(float) * kept);
    return;
  }
  FieldWriter codes_of_values(next);
  for (const uint8_t code : value_codes) codes_of_values.write(code, 2);
  codes_of_values.finish();
}

/// The code of a tensor in each of some messages.
struct Codes {
  Codes(const Tensor& messages, int64_t codes_at, const TopKBlockLayout& layout)
      : first(messages.data<uint8_t>() + codes_at), count(messages.size(0)), step(messages.size(1)) {
    for (int64_t message = 0; message < count; ++message) check_topk_block_code(layout, (*this)[message]);
  }
  const uint8_t* operator[](int64_t message) const { return first + message * step; }

  const uint8_t* first;
  int64_t count, step;
};

void topk_block_decode_add(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, float factor,
                           Tensor& sum) {
  const TopKBlockLayout layout(sum.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, sum);
  const Codes codes(messages, codes_at, layout);
  parallel_for(0, layout.grid.count(), 8 * kBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t message = 0; message < codes.count; ++message)
      for (int64_t block = begin; block < end; ++block)
        topk_block_add(layout, codes[message], block, factor, sum.data<float>());
  });
}

/// Fills a block with zeros, and prefetches the next one.
void clear(const BlockGrid& grid, int64_t block, float* y) {
  const int64_t ahead = prefetch_ahead(grid, block), width = grid.width(block);
  float* row = y + grid.at(block, 0);
  for (int64_t r = 0; r < grid.tile_rows; ++r, row += grid.columns) {
    for (int64_t j = 0; j < width; j += kPrefetched) __builtin_prefetch(row + ahead + j, 1);
    std::fill_n(row, width, 0.0f);
  }
}

/// Divides each element of a block by its number of senders, or multiplies all by `factor` if `senders` is null.
void divide(const BlockGrid& grid, int64_t block, const float* senders, float factor, float* y) {
  const int64_t n = grid.elements(block), width = grid.width(block), columns = grid.columns;
  float* const first = y + grid.at(block, 0);
  vectorized([=] {
    for (int64_t i = 0, row = 0; i < n; i += width, row += columns) {
      float* const to = first + row;
      if (senders == nullptr) {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[j] *= factor;
      } else {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[j] /= senders[i + j] > 1 ? senders[i + j] : 1;
      }
    }
  });
}

// A block stays in the cache while all messages are added to it.
void topk_block_mean(const Tensor& messages, int64_t codes_at, const TopKBlockOptions& options, MeanOver over,
                     Tensor& mean) {
  const TopKBlockLayout layout(mean.shape(), options);
  check_topk_block_decode(messages, codes_at, layout, mean);
  const Codes codes(messages, codes_at, layout);
  const auto factor = static_cast<float>(1.0 / static_cast<double>(codes.count));
  parallel_for(0, layout.grid.count(), 8 * kBlocks, [&](int64_t begin, int64_t end) {
    float* const y = mean.data<float>();
    std::vector<float> senders;
    for (int64_t block = begin; block < end; ++block) {
      clear(layout.grid, block, y);
      if (over == MeanOver::senders) senders.assign(static_cast<size_t>(layout.grid.elements(block)), 0);
      float* const counts = over == MeanOver::senders ? senders.data() : nullptr;
      for (int64_t message = 0; message < codes.count; ++message)
        topk_block_add(layout, codes[message], block, 1, y, counts);
      divide(layout.grid, block, counts, factor, y);
    }
  });
}

}  // namespace

void provide_topk_block() {
  kernels::topk_block_encode.provide(Target::cpu, topk_block_encode);
  kernels::topk_block_decode_add.provide(Target::cpu, topk_block_decode_add);
  kernels::topk_block_mean.provide(Target::cpu, topk_block_mean);
}

}  // namespace tern::cpu
