#include <tern/trainer/application.h>
#include <cmath>
#include "net.h"

using namespace tern;

/// Scaled sign (Karimireddy et al., "Error Feedback Fixes SignSGD", 2019): each element becomes its sign times the mean
/// magnitude of the tensor. A message has this mean, then the signs, one bit each.
struct ScaledSign final : GradientCodec {
  std::string spec() const override { return "sign"; }
  CodecTraits traits() const override { return {.promise = CodecPromise::contraction, .bits = 1}; }
  int64_t most_bytes(const Shape& shape) const override { return shape.numel() == 0 ? 0 : 4 + (shape.numel() + 7) / 8; }

  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const auto g = gradient.span<float>();
    double sum = 0;
    for (const float x : g) sum += std::abs(x);
    const auto scale = static_cast<float>(sum / static_cast<double>(g.size()));
    check(std::isfinite(scale), "gradient of '", tag.name, "' has NaN or infinite elements");
    append_value(bytes, scale);
    const size_t first = bytes.size();
    bytes.resize(first + (g.size() + 7) / 8);
    for (size_t i = 0; i < g.size(); ++i)
      if (g[i] < 0) bytes[first + i / 8] |= std::byte{1} << i % 8;
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    const auto scale = reader.value<float>();
    check(std::isfinite(scale), "message holds a scale that is not finite");
    const auto signs = reader.rest();
    const auto y = sum.span<float>();
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += (signs[i / 8] >> i % 8 & std::byte{1}) == std::byte{1} ? -scale : scale;
  }
};

std::unique_ptr<GradientCodec> make_sign(SpecParameters& options) {
  options.finish();  // it has no parameters
  return std::make_unique<ScaledSign>();
}

int main(int argc, char** argv) {
  return train(argc, argv,
               {.name = "own_codec",
                .model = [](const ModelSpec&) { return std::make_unique<Net>(); },
                .codecs = {{"sign", "none", "1; and 32 a tensor",
                            "biased: the direction; error-feedback:sign converges", make_sign}}});
}
