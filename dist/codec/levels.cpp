#include "tern/dist/codec/levels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/codec/entropy_coders.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/rans.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/trits.h"

namespace tern {
namespace {

using Bytes = std::vector<std::byte>;

/// The packing of one `Packing::entropy` message: its first byte.
using Chosen = kernels::EntropyPacking;

int64_t plane_bytes(int64_t n, int64_t levels) { return kernels::code_bytes(n, kernels::code_bits(levels)); }

/// The levels of bit planes as floats.
Tensor levels_in(const Tensor& codes, int64_t n, int64_t levels) {
  Tensor values = Tensor::zeros({n});
  const kernels::DecodedGradient decoded = {values};
  kernels::dequantize_add({&decoded, 1}, codes.reshape({1, codes.numel()}),
                          Tensor::full({kernels::bucket_count(n, 0)}, 1), 0, levels);
  return values;
}
std::vector<int32_t> integers_of(const Tensor& values) {
  const auto floats = values.span<float>();
  return {floats.begin(), floats.end()};
}

// Small levels get small symbols: 0, -1, 1, -2, 2, ...
uint16_t symbol_of(float level) {
  const auto value = static_cast<int32_t>(level);
  return static_cast<uint16_t>(value > 0 ? 2 * value : -2 * value - (value < 0));
}
int32_t level_of(uint16_t symbol) { return symbol % 2 == 0 ? symbol / 2 : -(symbol + 1) / 2; }

constexpr int64_t kGrain = 1 << 15;  ///< elements of a thread, at least

Bytes rans_bytes(const Tensor& levels) {
  std::vector<uint16_t> symbols(static_cast<size_t>(levels.numel()));
  parallel_for(0, levels.numel(), kGrain, [&](int64_t begin, int64_t end) {
    std::transform(levels.data<float>() + begin, levels.data<float>() + end, symbols.begin() + begin, symbol_of);
  });
  Bytes bytes;
  append_rans(symbols, bytes);
  return bytes;
}

void append_shortest(const Tensor& codes, const Tensor& levels, Bytes& bytes) {
  Bytes best = rans_bytes(levels);
  Chosen chosen = Chosen::rans;
  if (levels.numel() < kernels::kEliasElements) {
    Bytes elias;
    append_elias(integers_of(levels), elias);
    if (elias.size() < best.size()) {
      best = std::move(elias);
      chosen = Chosen::elias;
    }
  }
  if (static_cast<size_t>(codes.numel()) <= best.size()) {
    best.clear();
    append_values<uint8_t>(best, codes.span<uint8_t>());
    chosen = Chosen::planes;
  }
  append_value(bytes, chosen);
  append_values<std::byte>(bytes, best);
}

void add_planes(std::span<const std::byte> bytes, const Tensor& units, int64_t bucket, int64_t levels, Tensor& sum) {
  const Tensor codes = Tensor::empty({1, plane_bytes(sum.numel(), levels)}, {.dtype = DType::u8});
  check(static_cast<int64_t>(bytes.size()) == codes.numel(), "codes have ", bytes.size(), " bytes, expected ",
        codes.numel());
  std::memcpy(codes.data<uint8_t>(), bytes.data(), bytes.size());
  const kernels::DecodedGradient decoded = {sum};
  kernels::dequantize_add({&decoded, 1}, codes, units, bucket, levels);
}

/// sum += level · unit of its bucket. `level_at(i)` is that of element i.
template <class LevelAt>
void add_levels(const Tensor& units, int64_t bucket, Tensor& sum, LevelAt level_at) {
  const int64_t n = sum.numel(), width = bucket == 0 ? n : bucket;
  auto* const y = sum.data<float>();
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin / width; begin < end; ++b) {
      const float unit = units.data<float>()[b];
      for (const int64_t last = std::min(end, (b + 1) * width); begin < last; ++begin)
        y[begin] += level_at(static_cast<size_t>(begin)) * unit;
    }
  });
}

int64_t buckets_of(const Planes& planes, const Shape& shape) {
  return kernels::bucket_count(shape.numel(), planes.bucket_of(shape));
}

/// A message under construction: `bytes` is the whole message. `coded` has each gradient's codes in it, and a place for
/// its units.
struct PlanesToBe {
  PlanesToBe(const Planes& planes, const FusedGradients& message, bool holds_units) {
    int64_t unit_count = 0, code_count = 0;
    const int bits = kernels::code_bits(planes.levels);
    for (const auto& [tag, gradient] : message) {
      unit_count += buckets_of(planes, gradient.shape());
      code_count += kernels::code_bytes(gradient.numel(), bits);
    }
    const Device device = message.front().gradient.device();
    unit_bytes = holds_units ? 4 * unit_count : 0;
    bytes = Tensor::empty({unit_bytes + code_count}, {.dtype = DType::u8, .device = device});
    units = Tensor::empty({unit_count}, {.device = device});
    int64_t unit = 0, byte = unit_bytes;
    for (const auto& [tag, gradient] : message) {
      const int64_t next_unit = unit + buckets_of(planes, gradient.shape());
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

  void clip(const Tensor& clips) {
    int64_t unit = 0;
    for (kernels::CodedGradient& gradient : coded) {
      const int64_t next_unit = unit + gradient.units.numel();
      gradient.clips = clips.slice(unit, next_unit);
      unit = next_unit;
    }
  }

  Tensor bytes, units;
  int64_t unit_bytes;
  std::vector<kernels::CodedGradient> coded;
};

/// Gradients of a message, and their units.
using Measured = std::vector<kernels::UnitGradient>;

void check_units(const FusedGradients& message, const Measured& measured, GradientWatch& watch) {
  const bool on_cpu = message.front().gradient.device().type == DeviceType::cpu;
  std::vector<Tensor> units;
  for (size_t i = 0; i < message.size(); ++i) {
    units.push_back(measured[i].units);
    if (on_cpu) check_finite(message[i].tag, units[i].span<float>());
  }
  if (!on_cpu) watch.note(message, units, std::numeric_limits<float>::max());
}

/// Where the units and the codes of tensors are in a message of bit planes.
struct PlanesLayout {
  PlanesLayout(const Planes& planes, std::span<const Tensor> tensors, bool holds_units) : levels(planes.levels) {
    for (const Tensor& tensor : tensors) add(planes, tensor.shape(), holds_units);
  }
  PlanesLayout(const Planes& planes, const FusedGradients& message, bool holds_units) : levels(planes.levels) {
    for (const auto& [tag, gradient] : message) add(planes, gradient.shape(), holds_units);
  }
  /// Appends the tensors of a message, u8 [bytes]. Their prefixes are the units of each; or if `in_front`, the first
  /// tensor that has elements gets the units of all.
  void append(const Tensor& message, bool in_front, std::vector<kernels::PackedTensor>& tensors) const {
    int64_t unit = 0, byte = all_units;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t next_byte = byte + plane_bytes(sizes[i], levels);
      const int64_t next_unit = !in_front ? unit + unit_bytes[i] : sizes[i] == 0 ? unit : all_units;
      tensors.push_back({sizes[i], message.slice(byte, next_byte), message.slice(unit, next_unit)});
      unit = next_unit;
      byte = next_byte;
    }
  }

  std::vector<int64_t> sizes, unit_bytes;
  int64_t levels, all_units = 0, bytes = 0;

 private:
  void add(const Planes& planes, const Shape& shape, bool holds_units) {
    sizes.push_back(shape.numel());
    unit_bytes.push_back(holds_units ? 4 * buckets_of(planes, shape) : 0);
    all_units += unit_bytes.back();
    bytes += unit_bytes.back() + plane_bytes(sizes.back(), levels);
  }
};

}  // namespace

bool is_fixed_size(Packing packing) { return packing == Packing::fixed || packing == Packing::trits; }

int64_t packing_granule(Packing packing) {
  return packing == Packing::fixed ? kernels::kCodesPerWord : packing == Packing::trits ? kTritsPerByte : 0;
}

int64_t most_packed_bytes(Packing packing, int64_t n, int64_t levels) {
  switch (packing) {
    case Packing::fixed: return plane_bytes(n, levels);
    case Packing::trits: return trit_bytes(n);
    case Packing::elias: return kernels::most_elias_bytes(n, levels);
    case Packing::entropy: return kernels::most_entropy_bytes(n, levels);
  }
  return 0;
}

void append_packed(Packing packing, const Tensor& codes, int64_t n, int64_t levels, Bytes& bytes) {
  if (packing == Packing::fixed) return append_values<uint8_t>(bytes, codes.span<uint8_t>());
  const Tensor values = levels_in(codes, n, levels);
  if (packing == Packing::trits) return append_trits(integers_of(values), bytes);
  if (packing == Packing::elias) return append_elias(integers_of(values), bytes);
  append_shortest(codes, values, bytes);
}

void add_packed(Packing packing, std::span<const std::byte> bytes, const Tensor& units, int64_t bucket, int64_t levels,
                Tensor& sum) {
  if (packing == Packing::fixed) return add_planes(bytes, units, bucket, levels, sum);
  ByteReader reader(bytes);
  const auto most = static_cast<int32_t>(levels);
  Chosen chosen = Chosen::elias;
  if (packing == Packing::entropy) {
    const auto which = reader.value<uint8_t>();
    check(which <= static_cast<uint8_t>(Chosen::rans), "message has packing ", which, ", expected 0 to 2");
    chosen = static_cast<Chosen>(which);
    if (chosen == Chosen::planes) return add_planes(reader.rest(), units, bucket, levels, sum);
  }
  const auto n = static_cast<size_t>(sum.numel());
  if (chosen == Chosen::rans) {
    std::vector<uint16_t> symbols(n);
    read_rans(reader.rest(), static_cast<uint32_t>(2 * levels + 1), symbols);
    std::vector<float> level_of_symbol;
    for (int64_t symbol = 0; symbol <= 2 * levels; ++symbol)
      level_of_symbol.push_back(static_cast<float>(level_of(static_cast<uint16_t>(symbol))));
    return add_levels(units, bucket, sum, [&](size_t i) { return level_of_symbol[symbols[i]]; });
  }
  std::vector<int32_t> values(n);
  if (packing == Packing::trits)
    read_trits(reader.rest(), values);
  else
    read_elias(reader.rest(), most, values);
  add_levels(units, bucket, sum, [&](size_t i) { return static_cast<float>(values[i]); });
}

int64_t Planes::bucket_of(const Shape& shape) const {
  if (!by_fields) return bucket;
  // A field is all weights of one output unit. A vector has no fields.
  const int64_t field = shape.rank() < 2 ? 1 : std::max<int64_t>(1, shape.numel() / std::max<int64_t>(1, shape[0]));
  return std::max(field, bucket / field * field);
}

template <class Gradient, class Run>
void Planes::by_bucket(const std::vector<Gradient>& gradients, Run run) const {
  if (!by_fields) return run(std::span<const Gradient>(gradients), bucket);
  std::map<int64_t, std::vector<Gradient>> groups;
  for (const Gradient& gradient : gradients)
    groups[bucket_of(kernels::placement(std::span(&gradient, 1)).shape())].push_back(gradient);
  for (const auto& [length, group] : groups) run(std::span<const Gradient>(group), length);
}

Tensor Planes::encode(const FusedGradients& message, const Tensor& units, const Tensor& clips) const {
  PlanesToBe made(*this, message, false);
  made.units.copy_from(units);
  if (clips.defined()) made.clip(clips);
  by_bucket(made.coded, [&](auto coded, int64_t length) { kernels::quantize(coded, length, levels); });
  return made.bytes;
}

Tensor Planes::encode(const FusedGradients& message, const kernels::UnitRule& rule, GradientWatch& watch) const {
  using kernels::BucketNorm;
  const PlanesToBe made(*this, message, true);
  Measured measured;
  for (const auto& gradient : made.coded) measured.push_back({gradient.g, gradient.units});
  if (rule.norm == BucketNorm::l2 || rule.norm == BucketNorm::max) {
    by_bucket(made.coded,
              [&](auto coded, int64_t length) { kernels::norm_quantize(coded, rule.norm, length, levels); });
  } else {
    by_bucket(measured, [&](auto some, int64_t length) { kernels::gradient_units(some, rule, length); });
    by_bucket(made.coded, [&](auto coded, int64_t length) { kernels::quantize(coded, length, levels); });
  }
  made.put_units();
  check_units(message, measured, watch);
  return made.bytes;
}

Tensor Planes::units(const FusedGradients& message, const kernels::UnitRule& rule, GradientWatch& watch) const {
  int64_t count = 0;
  for (const auto& [tag, gradient] : message) count += buckets_of(*this, gradient.shape());
  const Tensor all = Tensor::empty({count}, {.device = message.front().gradient.device()});
  Measured measured;
  count = 0;
  for (const auto& [tag, gradient] : message) {
    const int64_t end = count + buckets_of(*this, gradient.shape());
    measured.push_back({gradient, all.slice(count, end)});
    count = end;
  }
  by_bucket(measured, [&](auto some, int64_t length) { kernels::gradient_units(some, rule, length); });
  check_units(message, measured, watch);
  return all;
}

Tensor Planes::with_trits(const FusedGradients& message, const Tensor& planes, bool holds_units) const {
  const PlanesLayout layout(*this, message, holds_units);
  int64_t length = layout.all_units;
  for (const int64_t size : layout.sizes) length += trit_bytes(size);
  std::vector<kernels::PackedTensor> tensors;
  layout.append(planes, true, tensors);
  Tensor bytes = Tensor::empty({length}, planes.options());
  kernels::trit_pack(tensors, bytes);
  return bytes;
}

Tensor Planes::without_trits(const Tensor& messages, std::span<const Tensor> sums, bool hold_units) const {
  const PlanesLayout layout(*this, sums, hold_units);
  const int64_t count = messages.size(0);
  const Tensor planes = Tensor::empty({count * layout.bytes}, messages.options());
  std::vector<kernels::PackedTensor> tensors;
  for (int64_t i = 0; i < count; ++i)
    layout.append(planes.slice(i * layout.bytes, (i + 1) * layout.bytes), true, tensors);
  kernels::trit_unpack(tensors, messages.reshape({messages.numel()}));
  return planes.reshape({count, layout.bytes});
}

CodedMessage Planes::packed(const FusedGradients& message, const Tensor& planes, bool holds_units,
                            Packing packing) const {
  const PlanesLayout layout(*this, message, holds_units);
  int64_t most = layout.all_units;
  for (const int64_t size : layout.sizes) most += most_packed_bytes(packing, size, levels);
  std::vector<kernels::PackedTensor> tensors;
  layout.append(planes, false, tensors);
  Tensor bytes = Tensor::empty({most}, planes.options());
  Tensor found = Tensor::empty({std::ssize(layout.sizes)}, {.dtype = DType::i64, .device = planes.device()});
  const auto& pack = packing == Packing::elias ? kernels::elias_pack : kernels::entropy_pack;
  pack(tensors, levels, bytes, found);
  const std::vector<int64_t> lengths = found.to_vector<int64_t>();
  return {bytes.slice(0, std::accumulate(lengths.begin(), lengths.end(), int64_t{0})), lengths};
}

Tensor Planes::unpacked(const Tensor& bytes, std::span<const int64_t> lengths, std::span<const Tensor> sums,
                        bool hold_units, Packing packing) const {
  const PlanesLayout layout(*this, sums, hold_units);
  const int64_t count = std::ssize(lengths) / std::ssize(sums);
  const Tensor messages = Tensor::empty({count * layout.bytes}, bytes.options());
  std::vector<kernels::PackedTensor> tensors;
  for (int64_t i = 0; i < count; ++i)
    layout.append(messages.slice(i * layout.bytes, (i + 1) * layout.bytes), false, tensors);
  const auto& unpack = packing == Packing::elias ? kernels::elias_unpack : kernels::entropy_unpack;
  unpack(tensors, levels, bytes, lengths);
  return messages.reshape({count, layout.bytes});
}

void Planes::decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const {
  const int bits = kernels::code_bits(levels);
  int64_t units = 0;
  for (const Tensor& sum : sums) units += buckets_of(*this, sum.shape());
  int64_t unit = 0, byte = shared.defined() ? 0 : 4 * units;
  std::vector<kernels::DecodedGradient> decoded;
  for (const Tensor& sum : sums) {
    decoded.push_back({sum, unit, byte});
    unit += buckets_of(*this, sum.shape());
    byte += kernels::code_bytes(sum.numel(), bits);
  }
  check(messages.size(1) == byte, "messages have ", messages.size(1), " bytes, expected ", byte);
  by_bucket(decoded, [&](std::span<const kernels::DecodedGradient> some, int64_t length) {
    if (!shared.defined() && messages.device().type == DeviceType::cpu)
      check_scalers(kernels::units_of(some, messages, {}, length).span<float>());
    kernels::dequantize_add(some, messages, shared, length, levels);
  });
}

Tensor PlanesCodec::encode(const FusedGradients& message, const Tensor& shared) {
  const Tensor planes = encode_planes(message, shared);
  return packing_ == Packing::trits ? planes_.with_trits(message, planes, !shared.defined()) : planes;
}

void PlanesCodec::decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const {
  if (packing_ != Packing::trits) return planes_.decode_add(messages, shared, sums);
  planes_.decode_add(planes_.without_trits(messages, sums, !shared.defined()), shared, sums);
}

CodedMessage PlanesCodec::encode_parts(const FusedGradients& message, const Tensor& shared) {
  return planes_.packed(message, encode_planes(message, shared), !shared.defined(), packing_);
}

void PlanesCodec::decode_add_parts(const Tensor& bytes, std::span<const int64_t> lengths, const Tensor& shared,
                                   std::span<const Tensor> sums) const {
  planes_.decode_add(planes_.unpacked(bytes, lengths, sums, !shared.defined(), packing_), shared, sums);
}

}  // namespace tern
