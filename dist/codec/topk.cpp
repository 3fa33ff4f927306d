#include <algorithm>
#include <bit>
#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"

namespace tern {
namespace {

uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

/// Keeps the k = ⌈ratio·n⌉ elements of largest magnitude; of equal magnitudes, the first ones. A message holds their
/// u32 indices, ascending, then their values.
class TopK final : public GradientCodec {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::string spec() const override { return join({"topk:ratio=", ratio_}); }
  CodecTraits traits() const override { return {.promise = CodecPromise::contraction, .bits = 64 * ratio_}; }
  int64_t most_bytes(const Shape& shape) const override { return 8 * kept(shape.numel()); }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    finite_statistics(tag, gradient, 0);
    const auto g = gradient.span<float>();
    const auto k = static_cast<size_t>(kept(gradient.numel()));
    std::vector<uint32_t> magnitudes(g.size());
    std::ranges::transform(g, magnitudes.begin(), magnitude_bits);
    std::ranges::nth_element(magnitudes, magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1), std::greater());
    const uint32_t smallest = magnitudes[k - 1];
    auto equals =
        k - static_cast<size_t>(std::ranges::count_if(g, [=](float x) { return magnitude_bits(x) > smallest; }));
    std::vector<uint32_t> indices;
    std::vector<float> values;
    for (size_t i = 0; i < g.size(); ++i) {
      const uint32_t magnitude = magnitude_bits(g[i]);
      if (magnitude < smallest || (magnitude == smallest && equals == 0)) continue;
      if (magnitude == smallest) --equals;
      indices.push_back(static_cast<uint32_t>(i));
      values.push_back(g[i]);
    }
    append_values<uint32_t>(bytes, indices);
    append_values<float>(bytes, values);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const auto k = static_cast<size_t>(kept(sum.numel()));
    std::vector<uint32_t> indices(k);
    std::vector<float> values(k);
    reader.values(std::span(indices));
    reader.values(std::span(values));
    for (size_t i = 0; i < k; ++i) {
      check(indices[i] < sum.numel() && (i == 0 || indices[i] > indices[i - 1]), "index ", i, " of the message is ",
            indices[i], ", expected ascending ones below ", sum.numel());
      check(std::isfinite(values[i]), "value ", i, " of the message is not finite");
    }
    for (size_t i = 0; i < k; ++i) sum.data<float>()[indices[i]] += values[i];
  }

 private:
  int64_t kept(int64_t n) const {
    check(n < int64_t{1} << 32, "topk: ", n, " elements, expected below 2^32");
    return std::min(n, static_cast<int64_t>(std::ceil(ratio_ * static_cast<double>(n))));
  }

  double ratio_;
};

std::unique_ptr<GradientCodec> make_topk(CodecOptions& options) {
  const double ratio = options.number("ratio", 0.01, 1e-9, 1);
  options.finish();
  return std::make_unique<TopK>(ratio);
}

}  // namespace

constinit const CodecEntry topk_entry = {"topk", "ratio=0.01 (of the elements, rounded up)", "64·ratio",
                                         "contraction: |g - decoded|² is at most (1 - ratio)·|g|²", make_topk};

}  // namespace tern
