#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tern/core/bfloat16.h"
#include "tern/dist/bytes.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/half.h"
#include "tern/dist/codec/table.h"

namespace tern {
namespace {

struct Float32 {
  using Stored = float;
  static constexpr const char* kName = "none";
  static constexpr CodecPromise kPromise = CodecPromise::exact;
  static Stored store(float value) { return value; }
  static float load(Stored stored) { return stored; }
};
struct Half {
  using Stored = uint16_t;
  static constexpr const char* kName = "fp16";
  static constexpr CodecPromise kPromise = CodecPromise::contraction;
  static Stored store(float value) { return half_bits(value); }
  static float load(Stored stored) { return (stored & 0x7c00u) == 0x7c00u ? NAN : half_value(stored); }
};
struct Brain {
  using Stored = uint16_t;
  static constexpr const char* kName = "bf16";
  static constexpr CodecPromise kPromise = CodecPromise::contraction;
  static Stored store(float value) { return BFloat16(value).bits; }
  static float load(Stored stored) {
    BFloat16 value;
    value.bits = stored;
    return value;
  }
};

/// Every element as a shorter float, or as it is.
template <class Format>
class FloatCodec final : public GradientCodec {
 public:
  std::string spec() const override { return Format::kName; }
  CodecTraits traits() const override {
    return {.promise = Format::kPromise, .bits = 8.0 * sizeof(typename Format::Stored)};
  }
  int64_t most_bytes(const Shape& shape) const override {
    return shape.numel() * static_cast<int64_t>(sizeof(typename Format::Stored));
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const auto largest = static_cast<float>(finite_statistics(tag, gradient, 0).to_vector<double>()[0]);
    check_input(std::isfinite(Format::load(Format::store(largest))), "gradient of '", tag.name, "' reaches ", largest,
                ", beyond what ", Format::kName, " holds");
    bytes.reserve(bytes.size() + static_cast<size_t>(most_bytes(gradient.shape())));
    for_blocks(std::span<const float>(gradient.span<float>()),
               [&](std::span<const float> values, std::span<Stored> stored) {
                 for (size_t i = 0; i < values.size(); ++i) stored[i] = Format::store(values[i]);
                 append_values<Stored>(bytes, stored);
               });
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    ByteReader reader(message);
    for_blocks(sum.span<float>(), [&](std::span<float> totals, std::span<Stored> stored) {
      reader.values(stored);
      uint32_t worst = 0;
      for (size_t i = 0; i < totals.size(); ++i) {
        const float value = Format::load(stored[i]);
        worst = std::max(worst, std::bit_cast<uint32_t>(value) & 0x7f800000u);  // the exponent
        totals[i] += value;
      }
      check(worst != 0x7f800000u, "message holds a value that is not finite");
    });
  }

 private:
  using Stored = typename Format::Stored;

  /// Calls `body(values, stored)` on blocks of values, each beside as much room for their stored form.
  template <class T, class Body>
  static void for_blocks(std::span<T> values, const Body& body) {
    std::array<Stored, 4096> room;
    for (size_t first = 0; first < values.size(); first += room.size()) {
      const size_t count = std::min(room.size(), values.size() - first);
      body(values.subspan(first, count), std::span(room).first(count));
    }
  }
};

template <class Format>
std::unique_ptr<GradientCodec> make(CodecOptions& options) {
  options.finish();
  return std::make_unique<FloatCodec<Format>>();
}

}  // namespace

constinit const CodecEntry none_entry = {"none", "none", "32", "exact", make<Float32>};
constinit const CodecEntry fp16_entry = {"fp16", "none", "16", "nearest half; an error beyond 65504, zero below 3e-8",
                                         make<Half>};
constinit const CodecEntry bf16_entry = {"bf16", "none", "16", "nearest bfloat16: 8 bits of precision", make<Brain>};

}  // namespace tern
