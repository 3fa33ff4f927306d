#include "tern/dist/codec/planes.h"

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"

namespace tern {
namespace {

/// A message as it is made: `bytes` whole, and each gradient's codes in it, with a place for its units.
struct PlanesToBe {
  PlanesToBe(const Planes& planes, const FusedGradients& message, bool holds_units) {
    int64_t unit_count = 0, code_count = 0;
    const int bits = kernels::code_bits(planes.levels);
    for (const auto& [tag, gradient] : message) {
      unit_count += kernels::bucket_count(gradient.numel(), planes.bucket);
      code_count += kernels::code_bytes(gradient.numel(), bits);
    }
    const Device device = message.front().gradient.device();
    unit_bytes = holds_units ? 4 * unit_count : 0;
    bytes = Tensor::empty({unit_bytes + code_count}, {.dtype = DType::u8, .device = device});
    units = Tensor::empty({unit_count}, {.device = device});
    int64_t unit = 0, byte = unit_bytes;
    for (const auto& [tag, gradient] : message) {
      const int64_t next_unit = unit + kernels::bucket_count(gradient.numel(), planes.bucket);
      const int64_t next_byte = byte + kernels::code_bytes(gradient.numel(), bits);
      coded.push_back({gradient, units.slice(unit, next_unit), bytes.slice(byte, next_byte), tag.key});
      unit = next_unit;
      byte = next_byte;
    }
  }

  void put_units() const {
    if (unit_bytes != 0)
      device_backend(bytes.device())
          .copy(bytes.raw_data(), bytes.device(), units.raw_data(), units.device(), static_cast<size_t>(unit_bytes));
  }

  Tensor bytes, units;
  int64_t unit_bytes;
  std::vector<kernels::CodedGradient> coded;
};

}  // namespace

Tensor Planes::encode(const FusedGradients& message, const Tensor& units, bool shared) const {
  const PlanesToBe made(*this, message, !shared);
  made.units.copy_from(units);
  made.put_units();
  kernels::quantize(made.coded, bucket, levels);
  return made.bytes;
}

Tensor Planes::encode(const FusedGradients& message, kernels::BucketNorm norm) const {
  const PlanesToBe made(*this, message, true);
  kernels::norm_quantize(made.coded, norm, bucket, levels);
  made.put_units();
  const Tensor units = made.units.to(Device{});
  int64_t first = 0;
  for (const auto& [tag, gradient] : message) {
    const int64_t next = first + kernels::bucket_count(gradient.numel(), bucket);
    check_finite(tag, units.slice(first, next).span<float>());
    first = next;
  }
  return made.bytes;
}

void Planes::decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const {
  const int bits = kernels::code_bits(levels);
  int64_t units = 0;
  for (const Tensor& sum : sums) units += kernels::bucket_count(sum.numel(), bucket);
  int64_t unit = 0, byte = shared.defined() ? 0 : 4 * units;
  std::vector<kernels::DecodedGradient> decoded;
  for (const Tensor& sum : sums) {
    decoded.push_back({sum, unit, byte});
    unit += kernels::bucket_count(sum.numel(), bucket);
    byte += kernels::code_bytes(sum.numel(), bits);
  }
  check(messages.size(1) == byte, "messages have ", messages.size(1), " bytes, expected ", byte);
  if (!shared.defined() && messages.device().type == DeviceType::cpu)
    check_scalers(kernels::units_of(decoded, messages, {}, bucket).span<float>());
  kernels::dequantize_add(decoded, messages, shared.defined() ? shared.to(messages.device()) : Tensor(), bucket,
                          levels);
}

}  // namespace tern
