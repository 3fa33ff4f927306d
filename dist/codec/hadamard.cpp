#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/hadamard.h"

namespace tern {
namespace {

/// EDEN, and with one bit DRIVE: see kernels/hadamard.h.
class Hadamard final : public WholeMessageCodec {
 public:
  explicit Hadamard(int bits) : bits_(bits) {}

  std::string spec() const override { return join({"hadamard:bits=", bits_}); }
  CodecTraits traits() const override { return {.bits = static_cast<double>(bits_)}; }
  int64_t most_bytes(const Shape& shape) const override { return kernels::hadamard_bytes(shape.numel(), bits_); }

  /// The decoded bucket is x plus something orthogonal to it, so that ‖decoded - x‖² = ‖decoded‖² - ‖x‖²; at most that
  /// in a last bucket, whose padding is not decoded.
  double omega(const GradientTag& tag, const Tensor& gradient) const override {
    const int64_t n = gradient.numel();
    const Tensor codes = encoded({{tag, gradient}});
    const std::vector<float> scales = floats_of(scale_bytes(codes, 0, n));
    double squares = 0, of_decoded = 0;
    for (const double x : gradient.span<float>()) squares += x * x;
    for (int64_t b = 0; b < std::ssize(scales); ++b) {
      const kernels::HadamardBucket place(n, bits_, b);
      const double scale = scales[static_cast<size_t>(b)];
      of_decoded += scale * scale * squared_levels(codes.data<uint8_t>() + place.planes_at, place) *
                    static_cast<double>(place.padded);
    }
    return squares == 0 ? 0 : std::max(0.0, of_decoded / squares - 1);
  }

  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override { return encoded(message); }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    each_checked_code(messages, sums,
                      [&](int64_t at, Tensor& sum) { kernels::hadamard_decode_add(messages, at, bits_, sum); });
  }
  std::vector<Tensor> means(const Tensor& messages, kernels::MeanOver over, const FusedGradients& like) const override {
    if (over != kernels::MeanOver::messages) return {};
    std::vector<Tensor> means;
    for (const auto& [tag, gradient] : like) means.push_back(Tensor::empty(gradient.shape(), gradient.options()));
    each_checked_code(messages, means,
                      [&](int64_t at, Tensor& mean) { kernels::hadamard_mean(messages, at, bits_, mean); });
    return means;
  }

 private:
  /// As `each_code`. On the CPU, throws before each call if the tensor's code has a scale that is out of range.
  template <class Decode>
  void each_checked_code(const Tensor& messages, std::span<const Tensor> tensors, Decode decode) const {
    each_code(messages, tensors, [&](int64_t at, Tensor& tensor) {
      if (messages.device().type == DeviceType::cpu)
        for (int64_t row = 0; row < messages.size(0); ++row)
          for (const float scale : floats_of(scale_bytes(messages, row * messages.size(1) + at, tensor.numel())))
            check(is_in_range(scale), "message has the scale ", scale, ", expected 0 to ", kMostScale);
      decode(at, tensor);
    });
  }
  Tensor encoded(const FusedGradients& message) const {
    const Tensor coded = empty_message(message);
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      const int64_t next = at + most_bytes(gradient.shape());
      Tensor codes = coded.slice(at, next);
      kernels::hadamard_encode(gradient, tag.key, bits_, codes);
      at = next;
    }
    std::vector<Tensor> scales;
    at = 0;
    for (const auto& [tag, gradient] : message) {
      scales.push_back(scale_bytes(coded, at, gradient.numel()));
      at += most_bytes(gradient.shape());
    }
    if (coded.device().type != DeviceType::cpu) {
      watch_.note(message, scales, kMostScale);
      return coded;
    }
    for (size_t i = 0; i < message.size(); ++i) {
      if (std::ranges::all_of(floats_of(scales[i]), is_in_range)) continue;
      finite_statistics(message[i].tag, message[i].gradient, 0);
      fail_input({"codec ", spec(), ", tensor '", message[i].tag.name,
                  "': found a norm that leaves the range of f32 when it is decoded"});
    }
    return coded;
  }
  /// Whether a decoded element, a sum of up to 4096 levels times the scale, is finite.
  static bool is_in_range(float scale) { return scale >= 0 && scale <= kMostScale; }
  static constexpr float kMostLevel = 3;
  static constexpr float kMostScale = std::numeric_limits<float>::max() / (kMostLevel * kernels::kHadamardBucket);
  /// Σ level² of a bucket's codes.
  double squared_levels(const uint8_t* planes, const kernels::HadamardBucket& place) const {
    const auto levels = kernels::normal_levels(bits_);
    double sum = 0;
    for (int64_t i = 0; i < place.padded; ++i) {
      size_t index = 0;
      for (int64_t plane = 1; plane < bits_; ++plane)
        index = index << 1 | (planes[plane * place.plane_bytes + i / 8] >> (i % 8) & 1u);
      sum += double{levels[index]} * levels[index];
    }
    return sum;
  }
  /// The bytes of the scales of the tensor of n elements whose code begins at byte `at`.
  static Tensor scale_bytes(const Tensor& codes, int64_t at, int64_t n) {
    const int64_t first = n == 0 ? at : at + kernels::HadamardBucket(n, 1, 0).scale_at;
    return codes.reshape({codes.numel()}).slice(first, first + 4 * kernels::hadamard_buckets(n));
  }

  int bits_;
  mutable GradientWatch watch_{
      "has NaN or infinite elements, or a norm that leaves the range of f32 when it is decoded"};
};

std::unique_ptr<GradientCodec> make_hadamard(SpecParameters& options) {
  const auto bits = static_cast<int>(options.integer("bits", 2, 1, kernels::kMostHadamardBits));
  options.finish();
  return std::make_unique<Hadamard>(bits);
}

}  // namespace

constinit const CodecEntry hadamard_entry = {
    "hadamard", "bits=2 (1 to 4)", "bits; and 32 for 4096 elements, 64 a tensor", "nearly unbiased", make_hadamard};

}  // namespace tern
