#include "tern/kernels/codec.h"

#include <algorithm>
#include <cstring>

namespace tern::kernels {
namespace {

void check_gradient(const char* operation, const Tensor& g, Device device) {
  check(g.defined() && g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ",
        g.defined() ? join({g.dtype(), ", ", g.format()}) : "undefined", ", expected f32, row_major");
  check(g.device() == device, operation, ": one gradient is on ", device, ", another on ", g.device());
  check(g.numel() < int64_t{1} << 33, operation, ": gradient has ", g.numel(), " elements, expected below 2^33");
}

void check_bucket(const char* operation, int64_t bucket) {
  check(bucket >= 0, operation, ": bucket is ", bucket, ", expected 0 or more");
}

void check_levels(const char* operation, int64_t levels) {
  check(levels >= 1 && levels <= kMostLevels, operation, ": levels is ", levels, ", expected 1 to ", kMostLevels);
}

void check_part(const char* operation, const char* name, const Tensor& part, DType dtype, const Shape& shape,
                Device device) {
  check(part.dtype() == dtype && part.shape() == shape && part.device() == device, operation, ": ", name, " are ",
        part.dtype(), " ", part.shape(), " on ", part.device(), ", expected ", dtype, " ", shape, " on ", device);
}

/// The number of units of this gradient and all gradients before it.
int64_t units_until(const DecodedGradient& gradient, int64_t bucket) {
  return gradient.first_unit + bucket_count(gradient.sum.numel(), bucket);
}

}  // namespace

void check_statistics(std::span<const MeasuredGradient> message, int64_t bucket) {
  const char* const operation = "gradient_statistics";
  check_bucket(operation, bucket);
  for (const auto& [g, statistics] : message) {
    const Device device = placement(message).device();
    check_gradient(operation, g, device);
    check_part(operation, "statistics", statistics, DType::f64, {bucket_count(g.numel(), bucket), 3}, device);
  }
}

void check_units(std::span<const UnitGradient> message, const UnitRule& rule, int64_t bucket) {
  const char* const operation = "gradient_units";
  check_bucket(operation, bucket);
  check_levels(operation, rule.levels);
  for (const auto& [g, units] : message) {
    const Device device = placement(message).device();
    check_gradient(operation, g, device);
    check_part(operation, "units", units, DType::f32, {bucket_count(g.numel(), bucket)}, device);
  }
}

void check_quantize(const char* operation, std::span<const CodedGradient> message, int64_t bucket, int64_t levels) {
  check_bucket(operation, bucket);
  check_levels(operation, levels);
  for (const auto& [g, units, codes, key, clips] : message) {
    const Device device = placement(message).device();
    check_gradient(operation, g, device);
    check_part(operation, "units", units, DType::f32, {bucket_count(g.numel(), bucket)}, device);
    check_part(operation, "codes", codes, DType::u8, {code_bytes(g.numel(), code_bits(levels))}, device);
    check(clips.defined() == message.front().clips.defined(), operation,
          ": some gradients of the message have clips, expected all or none");
    if (clips.defined()) check_part(operation, "clips", clips, DType::f32, {bucket_count(g.numel(), bucket)}, device);
  }
}

void check_dequantize(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units,
                      int64_t bucket, int64_t levels) {
  const char* const operation = "dequantize_add";
  check_bucket(operation, bucket);
  check_levels(operation, levels);
  check(messages.dtype() == DType::u8 && messages.rank() == 2, operation, ": messages are ", messages.dtype(), " ",
        messages.shape(), ", expected u8 [messages, bytes]");
  check(!units.defined() || (units.dtype() == DType::f32 && units.rank() == 1 && units.device() == messages.device()),
        operation, ": units are no f32 [units] on the device of the messages");
  const int64_t held = units.defined() ? units.numel() : messages.size(1) / 4;
  for (const DecodedGradient& gradient : message) {
    check_gradient(operation, gradient.sum, messages.device());
    const int64_t end = gradient.codes_at + code_bytes(gradient.sum.numel(), code_bits(levels));
    check(gradient.codes_at >= 0 && end <= messages.size(1), operation, ": codes end at byte ", end, " of ",
          messages.size(1));
    check(gradient.first_unit >= 0 && units_until(gradient, bucket) <= held, operation, ": ",
          units_until(gradient, bucket), " units are needed, found ", held);
  }
}

Tensor units_of(std::span<const DecodedGradient> message, const Tensor& messages, const Tensor& units, int64_t bucket) {
  if (units.defined()) return units.reshape({1, units.numel()});
  int64_t count = 0;
  for (const DecodedGradient& gradient : message) count = std::max(count, units_until(gradient, bucket));
  Tensor all = Tensor::empty({messages.size(0), count});
  if (count == 0) return all;
  for (int64_t row = 0; row < messages.size(0); ++row)
    std::memcpy(all.data<float>() + row * count, messages.data<uint8_t>() + row * messages.size(1),
                static_cast<size_t>(4 * count));
  return all;
}

}  // namespace tern::kernels
