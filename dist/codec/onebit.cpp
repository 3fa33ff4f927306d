#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"

namespace tern {
namespace {

/// 1-bit SGD (Seide et al., 2014). It keeps the sign of each element. For each column it keeps the mean of the negative
/// elements and the mean of the others. A column is all weights of one output unit; a vector is one column. A message
/// holds the pairs of means, then the signs, eight per byte, the first in the lowest bit.
class OneBit final : public GradientCodec {
 public:
  std::string spec() const override { return "onebit"; }
  CodecTraits traits() const override { return {.promise = CodecPromise::contraction, .bits = 1, .by_rows = true}; }
  int64_t most_bytes(const Shape& shape) const override {
    return shape.numel() == 0 ? 0 : 8 * columns(shape) + (shape.numel() + 7) / 8;
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    finite_statistics(tag, gradient, 0);
    const auto g = gradient.span<float>();
    const size_t width = g.size() / static_cast<size_t>(columns(gradient.shape()));
    for (size_t first = 0; first < g.size(); first += width) {
      double sum = 0, magnitudes = 0;  // they give the sums of both sides without a branch; f64 has bits to spare
      size_t negatives = 0;
      for (const float value : g.subspan(first, width)) {
        sum += value;
        magnitudes += std::abs(value);
        negatives += static_cast<size_t>(value < 0);
      }
      append_value(bytes, mean((sum - magnitudes) / 2, negatives));
      append_value(bytes, mean((sum + magnitudes) / 2, width - negatives));
    }
    for (size_t first = 0; first < g.size(); first += 8) {
      uint8_t byte = 0;
      for (size_t i = first; i < std::min(first + 8, g.size()); ++i)
        byte |= static_cast<uint8_t>((g[i] < 0 ? 1u : 0u) << (i - first));
      append_value(bytes, byte);
    }
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    std::vector<float> means(static_cast<size_t>(2 * columns(sum.shape())));
    reader.values(std::span(means));
    check(std::ranges::all_of(means, [](float mean) { return std::isfinite(mean); }),
          "message holds a mean that is not finite");
    const auto signs = reader.rest();
    const auto y = sum.span<float>();
    const size_t width = y.size() / (means.size() / 2);
    size_t i = 0;
    for (size_t column = 0; column < means.size() / 2; ++column) {
      // A table, not a branch: signs are random, and a wrong guess costs as much as ten elements.
      const float by_sign[] = {means[2 * column + 1], means[2 * column]};
      for (const size_t end = i + width; i < end; ++i)
        y[i] += by_sign[static_cast<uint32_t>(signs[i / 8]) >> (i % 8) & 1u];
    }
  }

 private:
  static int64_t columns(const Shape& shape) { return shape.rank() < 2 ? 1 : shape[0]; }
  static float mean(double sum, size_t count) {
    return static_cast<float>(count == 0 ? 0 : sum / static_cast<double>(count));
  }
};

std::unique_ptr<GradientCodec> make_onebit(CodecOptions& options) {
  options.finish();
  return with_built_in_feedback(std::make_unique<OneBit>());
}

}  // namespace

constinit const CodecEntry onebit_entry = {"onebit", "none", "1; and 64 a column (all weights of one output unit)",
                                           "error feedback, built in", make_onebit};

}  // namespace tern
