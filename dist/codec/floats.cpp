#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/feedback.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/short_float.h"

namespace tern {
namespace {

using kernels::ShortFloat;

/// Sends every element unchanged.
class FloatCodec final : public WholeMessageCodec {
 public:
  std::string spec() const override { return "none"; }
  CodecTraits traits() const override { return {.promise = CodecPromise::exact, .by_elements = true}; }
  int64_t most_bytes(const Shape& shape) const override { return 4 * shape.numel(); }
  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    std::vector<Tensor> gradients;
    for (const auto& [tag, gradient] : message) gradients.push_back(gradient);
    const Tensor coded = empty_message(message);
    if (coded.device().type == DeviceType::cpu)
      finite_statistics(message, 0);
    else
      watch_.note(message, gradients, std::numeric_limits<float>::max());
    std::vector<kernels::Conversion> copies;
    for (size_t at = 0; const Tensor& gradient : gradients) {
      copies.push_back({gradient, coded.view(at, gradient.shape(), DType::f32)});
      at += gradient.bytes();
    }
    kernels::convert_all(copies);
    return coded;
  }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    if (messages.device().type == DeviceType::cpu) check_numbers(messages);
    const Tensor all = messages.reshape({messages.numel()});
    size_t at = 0;
    for (int64_t row = 0; row < messages.size(0); ++row) {
      std::vector<kernels::ScaledAddition> additions;
      for (const Tensor& sum : sums) {
        additions.push_back({all.view(at, sum.shape(), DType::f32), sum});
        at += sum.bytes();
      }
      kernels::add_scaled(additions, {}, 1);
    }
    check(at == all.bytes(), "messages have ", all.bytes(), " bytes, expected ", at);
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }

 private:
  static void check_numbers(const Tensor& messages) {
    uint32_t worst = 0;
    for (size_t at = 0; at + sizeof(float) <= messages.bytes(); at += sizeof(float)) {
      uint32_t bits;
      std::memcpy(&bits, messages.data<uint8_t>() + at, sizeof bits);
      worst = std::max(worst, bits & 0x7f800000u);  // the exponent
    }
    check(worst != 0x7f800000u, "message holds a value that is not finite");
  }

  GradientWatch watch_{"has NaN or infinite elements"};
};

/// Sends every element as a float of 16 bits.
class ShortFloatCodec final : public WholeMessageCodec {
 public:
  explicit ShortFloatCodec(ShortFloat format)
      : format_(format), watch_(join({"has NaN or infinite elements, or reaches beyond what ", spec(), " holds"})) {}

  std::string spec() const override { return format_ == ShortFloat::half ? "fp16" : "bf16"; }
  CodecTraits traits() const override {
    return {.promise = CodecPromise::contraction, .bits = 16, .by_elements = true};
  }
  int64_t most_bytes(const Shape& shape) const override { return 2 * shape.numel(); }
  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    if (message.front().gradient.device().type == DeviceType::cpu)
      check_range(message);
    else
      note_range(message);
    const Tensor coded = empty_message(message);
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      const int64_t next = at + most_bytes(gradient.shape());
      Tensor codes = coded.slice(at, next);
      kernels::shorten(gradient, format_, codes);
      at = next;
    }
    return coded;
  }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    if (messages.device().type == DeviceType::cpu) check_codes(messages.span<uint8_t>());
    int64_t at = 0;
    for (Tensor sum : sums) {
      kernels::widen_add(messages, at, format_, sum);
      at += most_bytes(sum.shape());
    }
    check(messages.size(1) == at, "messages have ", messages.size(1), " bytes, expected ", at);
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }

 private:
  void check_range(const FusedGradients& message) const {
    const Tensor statistics = finite_statistics(message, 0);
    const auto* row = statistics.data<double>();
    for (const auto& [tag, gradient] : message) {
      if (gradient.numel() == 0) continue;
      const auto largest = static_cast<float>(*row);
      check_input(std::isfinite(kernels::short_value(kernels::short_bits(largest, format_), format_)), "gradient of '",
                  tag.name, "' reaches ", largest, ", beyond what ", spec(), " holds");
      row += 3;
    }
  }
  void note_range(const FusedGradients& message) {
    std::vector<Tensor> gradients;
    for (const auto& [tag, gradient] : message) gradients.push_back(gradient);
    // The last number before one that is rounded up to infinity.
    watch_.note(message, gradients, std::bit_cast<float>(format_ == ShortFloat::half ? 0x477fefffu : 0x7f7f7fffu));
  }
  void check_codes(std::span<const uint8_t> codes) const {
    const uint16_t exponent = format_ == ShortFloat::half ? 0x7c00 : 0x7f80;
    uint32_t found = 0;
    for (size_t i = 0; i + 1 < codes.size(); i += 2) {
      uint16_t bits;
      std::memcpy(&bits, codes.data() + i, sizeof bits);
      found |= (bits & exponent) == exponent ? 1u : 0u;
    }
    check(found == 0, "message holds a value that is not finite");
  }

  ShortFloat format_;
  GradientWatch watch_;
};

std::unique_ptr<GradientCodec> make_none(SpecParameters& options) {
  options.finish();
  return std::make_unique<FloatCodec>();
}
template <ShortFloat kFormat>
std::unique_ptr<GradientCodec> make_floats(SpecParameters& options) {
  options.finish();
  return std::make_unique<ShortFloatCodec>(kFormat);
}

}  // namespace

constinit const CodecEntry none_entry = {"none", "none", "32", "exact", make_none};
constinit const CodecEntry fp16_entry = {"fp16", "none", "16", "nearest half; an error beyond 65504, zero below 3e-8",
                                         make_floats<ShortFloat::half>};
constinit const CodecEntry bf16_entry = {"bf16", "none", "16", "nearest bfloat16: 8 bits of precision",
                                         make_floats<ShortFloat::brain>};

}  // namespace tern
