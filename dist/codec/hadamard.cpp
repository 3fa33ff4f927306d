#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec.h"

namespace tern {
namespace {

constexpr int64_t kRotated = 4096;

constexpr size_t kMostBits = 4;

/// The positive Lloyd-Max levels of the standard normal distribution, for 2 to 16 levels: each level is the mean of its
/// cell, and each border is the middle between two levels (Max, 1960).
constexpr std::array<std::array<float, 8>, kMostBits> kNormalLevels = {
    {{0.797884583f},
     {0.452780038f, 1.51041758f},
     {0.24509418f, 0.756005287f, 1.34390926f, 2.15194559f},
     {0.128395036f, 0.388048291f, 0.656759143f, 0.942340434f, 1.25623119f, 1.6180464f, 2.06901717f, 2.73258948f}}};

/// For each byte, its bits as eight bytes: bit i is the lowest bit of byte i.
constexpr std::array<uint64_t, 256> kSpread = [] {
  std::array<uint64_t, 256> spread = {};
  for (uint64_t byte = 0; byte < 256; ++byte)
    for (uint64_t bit = 0; bit < 8; ++bit) spread[byte] |= (byte >> bit & 1u) << (8 * bit);
  return spread;
}();

/// The lowest bits of eight bytes as one byte: the inverse of kSpread.
uint8_t gather_bits(uint64_t bytes) {
  return static_cast<uint8_t>((bytes & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

void add_and_subtract(float* __restrict a, float* __restrict b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i], difference = a[i] - b[i];
    a[i] = sum;
    b[i] = difference;
  }
}

/// x ← Hx for the Hadamard matrix H of ±1 with d = x.size() rows, a power of two.
void transform(std::span<float> x) {
  for (size_t half = 1; half < x.size(); half *= 2)
    for (size_t first = 0; first < x.size(); first += 2 * half)
      add_and_subtract(x.data() + first, x.data() + first + half, half);
}

/// Changes the signs of x by the random bits of `stream` from `bucket` on.
void flip_signs(std::span<float> x, const RandomStream& stream, int64_t bucket) {
  constexpr size_t kSignsInBlock = 128;  // of random words
  const auto first_block = static_cast<uint32_t>(bucket * kRotated / static_cast<int64_t>(kSignsInBlock));
  for (size_t begin = 0; begin < x.size(); begin += kSignsInBlock) {
    const auto words = stream.block(first_block + static_cast<uint32_t>(begin / kSignsInBlock));
    const size_t count = std::min(kSignsInBlock, x.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      float& value = x[begin + i];
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ (words[i / 32] >> (i % 32) << 31));
    }
  }
}

/// EDEN (Vargaftik et al., arXiv 2108.08842); with one bit it is DRIVE (arXiv 2105.08339). A bucket x of d elements is
/// rotated: r = HDx/√d, with random signs D. Its elements are then nearly normal, so that the Lloyd-Max levels of the
/// normal distribution fit them. If c are the levels nearest to r√d/‖r‖, the bucket decodes as DH(Sc)/√d, with S =
/// ‖r‖² / ⟨r, c⟩. That is unbiased as d grows. A last bucket is padded with zeros to the next power of two. A message
/// holds the 64-bit seed of the signs; then for each bucket S/√d (f32); then for each bucket its codes, as one plane of
/// bits after the other: the signs, then the index of the level, the highest bit first.
class Hadamard final : public GradientCodec {
 public:
  explicit Hadamard(int bits) : bits_(static_cast<size_t>(bits)) {
    const auto& levels = kNormalLevels[bits_ - 1];
    const size_t half = size_t{1} << (bits_ - 1);
    for (size_t i = 0; i < half; ++i) {
      values_[i] = levels[i];
      values_[half + i] = -levels[i];
      if (i > 0) borders_.push_back((levels[i - 1] + levels[i]) / 2);
    }
  }

  std::string spec() const override { return join({"hadamard:bits=", bits_}); }
  CodecTraits traits() const override { return {.bits = static_cast<double>(bits_)}; }
  int64_t most_bytes(const Shape& shape) const override {
    const int64_t n = shape.numel(), buckets = buckets_of(n);
    if (n == 0) return 0;
    const int64_t last = padded(n - (buckets - 1) * kRotated);
    return 8 + 4 * buckets + static_cast<int64_t>(bits_) * ((buckets - 1) * kRotated / 8 + (last + 7) / 8);
  }
  /// The decoded bucket is x plus something orthogonal to it, so that ‖decoded - x‖² = ‖decoded‖² - ‖x‖².
  double omega(const GradientTag& tag, const Tensor& gradient) const override {
    double all = 0, of_decoded = 0;
    const RandomStream signs = signs_of(drawn_seed(tag.key));
    for (int64_t b = 0; b < buckets_of(gradient.numel()); ++b) {
      const CodedBucket coded = encode(gradient, b, signs);
      all += coded.squares;
      double squares = 0;
      for (const uint8_t code : coded.codes) squares += double{values_[code]} * values_[code];
      of_decoded += coded.scale * coded.scale * squares * static_cast<double>(coded.codes.size());
    }
    return all == 0 ? 0 : std::max(0.0, of_decoded / all - 1);
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    finite_statistics(tag, gradient, 0);
    const int64_t buckets = buckets_of(gradient.numel());
    const uint64_t seed = drawn_seed(tag.key);
    const RandomStream signs = signs_of(seed);
    std::vector<float> scales(static_cast<size_t>(buckets));
    std::vector<std::byte> planes(static_cast<size_t>(most_bytes(gradient.shape()) - 8 - 4 * buckets));
    parallel_for(0, buckets, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const CodedBucket coded = encode(gradient, b, signs);
        scales[static_cast<size_t>(b)] = static_cast<float>(coded.scale);
        pack(coded.codes, planes_of(std::span(planes), b));
      }
    });
    check_input(std::ranges::all_of(scales, is_in_range), "codec ", spec(), ", tensor '", tag.name,
                "': found a norm that leaves the range of f32 when it is decoded");
    append_value(bytes, seed);
    append_values<float>(bytes, scales);
    append_values<std::byte>(bytes, planes);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    const int64_t n = sum.numel(), buckets = buckets_of(n);
    ByteReader reader(message);
    const RandomStream signs = signs_of(reader.value<uint64_t>());
    std::vector<float> scales(static_cast<size_t>(buckets));
    reader.values(std::span(scales));
    check(std::ranges::all_of(scales, is_in_range), "message has a scale out of range");
    const auto planes = reader.rest();
    parallel_for(0, buckets, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const auto to = bucket_of(sum, b);
        std::vector<float> x(static_cast<size_t>(padded(std::ssize(to))));
        unpack(planes_of(planes, b), x);
        transform(x);
        flip_signs(x, signs, b);
        for (size_t i = 0; i < to.size(); ++i) to[i] += scales[static_cast<size_t>(b)] * x[i];
      }
    });
  }

 private:
  struct CodedBucket {
    std::vector<uint8_t> codes;  ///< the sign in the highest of `bits_` bits, then the index of the level
    double scale = 0;            ///< S/√d
    double squares = 0;          ///< ‖x‖²
  };

  /// Whether a decoded element, a sum of up to 4096 levels times the scale, is finite.
  static bool is_in_range(float scale) {
    constexpr float kMostLevel = 3;
    return scale >= 0 && scale <= std::numeric_limits<float>::max() / (kMostLevel * kRotated);
  }
  static int64_t buckets_of(int64_t n) { return kernels::bucket_count(n, kRotated); }
  static int64_t padded(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }
  static std::span<float> bucket_of(const Tensor& tensor, int64_t b) {
    return {tensor.data<float>() + b * kRotated,
            static_cast<size_t>(std::min(kRotated, tensor.numel() - b * kRotated))};
  }
  static RandomStream signs_of(uint64_t seed) { return RandomStream({.seed = seed, .purpose = Purpose::codec}); }
  /// The part of all planes that holds bucket b.
  template <class Byte>
  std::span<Byte> planes_of(std::span<Byte> planes, int64_t b) const {
    const size_t full = bits_ * static_cast<size_t>(kRotated) / 8, begin = static_cast<size_t>(b) * full;
    return planes.subspan(begin, std::min(full, planes.size() - begin));
  }

  CodedBucket encode(const Tensor& gradient, int64_t b, const RandomStream& signs) const {
    const auto from = bucket_of(gradient, b);
    std::vector<float> x(static_cast<size_t>(padded(std::ssize(from))));
    std::ranges::copy(from, x.begin());
    CodedBucket coded = {std::vector<uint8_t>(x.size())};
    for (const float value : x) coded.squares += double{value} * value;
    if (coded.squares == 0) return coded;
    const double norm = std::sqrt(coded.squares);
    for (float& value : x) value = static_cast<float>(value / norm);
    flip_signs(x, signs, b);
    transform(x);
    quantize(x, coded.codes);
    double product = 0;
    for (size_t i = 0; i < x.size(); ++i) product += double{x[i]} * values_[coded.codes[i]];
    coded.scale = norm / product;
    return coded;
  }
  void quantize(std::span<const float> x, std::span<uint8_t> codes) const {
    for (size_t i = 0; i < x.size(); ++i) codes[i] = x[i] < 0 ? 1 : 0;
    for (size_t bit = 1; bit < bits_; ++bit)
      for (uint8_t& code : codes) code = static_cast<uint8_t>(code << 1);
    for (const float border : borders_)
      for (size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<uint8_t>(codes[i] + (std::abs(x[i]) > border));
  }
  void pack(std::span<const uint8_t> codes, std::span<std::byte> planes) const {
    const size_t plane = (codes.size() + 7) / 8;
    for (size_t group = 0; group < plane; ++group) {
      uint64_t eight = 0;
      std::memcpy(&eight, &codes[8 * group], std::min<size_t>(8, codes.size() - 8 * group));
      for (size_t bit = 0; bit < bits_; ++bit)
        planes[bit * plane + group] = static_cast<std::byte>(gather_bits(eight >> (bits_ - 1 - bit)));
    }
  }
  void unpack(std::span<const std::byte> planes, std::span<float> x) const {
    const size_t plane = (x.size() + 7) / 8;
    for (size_t group = 0; group < plane; ++group) {
      uint64_t eight = 0;
      for (size_t bit = 0; bit < bits_; ++bit)
        eight = eight << 1 | kSpread[static_cast<size_t>(planes[bit * plane + group])];
      for (size_t i = 8 * group; i < std::min(8 * group + 8, x.size()); ++i, eight >>= 8) x[i] = values_[eight & 15u];
    }
  }

  size_t bits_;
  std::vector<float> borders_;                             ///< between the magnitudes of levels
  std::array<float, size_t{1} << kMostBits> values_ = {};  ///< the level of each code
};

std::unique_ptr<GradientCodec> make_hadamard(CodecOptions& options) {
  const auto bits = static_cast<int>(options.integer("bits", 2, 1, kMostBits));
  options.finish();
  return std::make_unique<Hadamard>(bits);
}

}  // namespace

constinit const CodecEntry hadamard_entry = {"hadamard", "bits=2 (1 to 4)", "bits; and 32 for 4096, 64 a tensor",
                                             "unbiased as the bucket of 4096 grows", make_hadamard};

}  // namespace tern
