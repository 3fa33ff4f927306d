#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec_arithmetic.h"

namespace tern {
namespace {

/// Draws k of n indices, ascending; every set is equally likely (Floyd's algorithm: J. Bentley, CACM 30(9), 1987).
std::vector<uint32_t> draw_indices(uint64_t seed, int64_t n, int64_t k) {
  const RandomStream stream({.seed = seed, .purpose = Purpose::codec});
  std::vector<bool> drawn(static_cast<size_t>(n));
  for (int64_t last = n - k; last < n; ++last) {
    const uint32_t index = stream.below(static_cast<uint64_t>(last), static_cast<uint32_t>(last + 1));
    drawn[drawn[index] ? static_cast<size_t>(last) : index] = true;
  }
  std::vector<uint32_t> indices;
  for (size_t i = 0; i < drawn.size(); ++i)
    if (drawn[i]) indices.push_back(static_cast<uint32_t>(i));
  return indices;
}

/// Keeps k = ⌈ratio·n⌉ elements drawn at random, times n/k. A message holds the 64-bit seed of the draw, then the
/// products.
class RandK final : public GradientCodec {
 public:
  explicit RandK(double ratio) : ratio_(ratio) {}

  std::string spec() const override { return join({"randk:ratio=", ratio_}); }
  CodecTraits traits() const override { return {.bits = 32 * ratio_, .sparse = true}; }
  int64_t most_bytes(const Shape& shape) const override { return shape.numel() == 0 ? 0 : 8 + 4 * kept(shape.numel()); }
  double omega(const GradientTag&, const Tensor& gradient) const override { return scale(gradient.numel()) - 1; }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    finite_statistics(tag, gradient, 0);
    const int64_t n = gradient.numel();
    const uint64_t seed = kernels::drawn_seed(tag.key);
    append_value(bytes, seed);
    std::vector<float> values;
    for (const uint32_t i : draw_indices(seed, n, kept(n)))
      values.push_back(static_cast<float>(gradient.data<float>()[i] * scale(n)));
    check_finite(tag, values);
    append_values<float>(bytes, values);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const auto seed = reader.value<uint64_t>();
    std::vector<float> values(static_cast<size_t>(kept(sum.numel())));
    reader.values(std::span(values));
    check(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }),
          "message holds a value that is not finite");
    auto value = values.begin();
    for (const uint32_t i : draw_indices(seed, sum.numel(), kept(sum.numel()))) sum.data<float>()[i] += *value++;
  }

 private:
  int64_t kept(int64_t n) const {
    check(n < int64_t{1} << 32, "randk: ", n, " elements, expected below 2^32");
    return std::min(n, static_cast<int64_t>(std::ceil(ratio_ * static_cast<double>(n))));
  }
  double scale(int64_t n) const { return static_cast<double>(n) / static_cast<double>(kept(n)); }

  double ratio_;
};

std::unique_ptr<GradientCodec> make_randk(CodecOptions& options) {
  const double ratio = options.number("ratio", 0.01, 1e-9, 1);
  options.finish();
  return std::make_unique<RandK>(ratio);
}

}  // namespace

constinit const CodecEntry randk_entry = {"randk", "ratio=0.01 (of the elements, rounded up)",
                                          "32·ratio; and 64 a tensor", "unbiased; variance (1/ratio - 1)·|g|²",
                                          make_randk};

}  // namespace tern
