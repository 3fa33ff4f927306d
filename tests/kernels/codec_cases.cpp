#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/feedback.h"
#include "tern/kernels/hadamard.h"
#include "tern/kernels/onebit.h"
#include "tern/kernels/randk.h"
#include "tern/kernels/short_float.h"
#include "tern/kernels/topk.h"
#include "tern/kernels/topk_block.h"
#include "tern/kernels/trits.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

using namespace tern::kernels;

struct CodecCase {
  const char* name;
  std::vector<int64_t> sizes;  // of the gradients of a message
  int64_t bucket, levels;
};
const CodecCase kCodecCases[] = {
    {"empty", {0}, 0, 1},
    {"one", {1}, 0, 1},
    {"short group", {37}, 0, 7},
    {"one chunk", {256}, 0, 3},
    {"runs", {70001}, 0, 1},
    {"blocks of runs", {140'001}, 70'000, 1},
    {"buckets", {3000}, 512, 7},
    {"buckets shorter than a tile", {3001}, 32, 7},
    {"buckets longer than a run", {20'011}, 4352, 100},
    {"odd buckets", {999}, 7, 5},
    {"buckets across tiles", {2111}, 100, 2},
    {"wide levels", {1000}, 300, 32767},
    {"bucket of one", {300}, 1, 1},
    {"message", {500, 0, 33, 1, 4100, 20}, 0, 1},
    {"message of buckets", {33, 1024, 0, 7, 2055}, 512, 7},
};

const RandomKey kKey{.seed = 5, .purpose = Purpose::codec, .owner = 3, .step = 2, .tensor = 9};

/// Numbers like those of gradients. Some are zero, some are greater than any unit, and element 31 is `unlike`.
Tensor gradient(Run& run, int64_t n, float unlike = 0) {
  std::vector<float> values = run.input({n}).to(Device{}).to_vector<float>();
  for (size_t i = 5; i < values.size(); i += 97) values[i] = i % 2 == 0 ? 0 : 1e6f;
  if (n > 40) values[31] = unlike;
  return Tensor::from({n}, values).to(run.device());
}

int64_t units_of(const CodecCase& c) {
  int64_t count = 0;
  for (const int64_t n : c.sizes) count += bucket_count(n, c.bucket);
  return count;
}
int64_t code_bytes_of(const CodecCase& c) {
  int64_t count = 0;
  for (const int64_t n : c.sizes) count += code_bytes(n, code_bits(c.levels));
  return count;
}
Tensor units(Run& run, int64_t count, int64_t levels) {
  const auto most = static_cast<double>(levels);
  return run.parameter({count}, 0.5 / most, 1.5 / most).to(DType::f32);
}

/// The gradients of the case. Their codes follow each other in `codes`, from an odd byte on.
std::vector<CodedGradient> coded(Run& run, const CodecCase& c, const Tensor& units, const Tensor& codes,
                                 float unlike = 0) {
  std::vector<CodedGradient> message;
  int64_t unit = 0, byte = 1;
  for (const int64_t n : c.sizes) {
    const int64_t next_unit = unit + bucket_count(n, c.bucket), next_byte = byte + code_bytes(n, code_bits(c.levels));
    RandomKey key = kKey;
    key.tensor += static_cast<uint32_t>(message.size());
    message.push_back({gradient(run, n, unlike), units.slice(unit, next_unit), codes.slice(byte, next_byte), key});
    unit = next_unit;
    byte = next_byte;
  }
  return message;
}

void run_statistics(Run& run, const CodecCase& c, float unlike) {
  const Tensor& statistics = run.output_as(DType::f64, {units_of(c), 3});
  std::vector<MeasuredGradient> message;
  int64_t row = 0;
  for (const int64_t n : c.sizes) {
    const int64_t next = row + bucket_count(n, c.bucket);
    message.push_back({gradient(run, n, unlike), statistics.slice(row, next)});
    row = next;
  }
  run(gradient_statistics, message, c.bucket);
}

void run_units(Run& run, const CodecCase& c, const UnitRule& rule, float unlike) {
  const Tensor& units = run.output_as(DType::f32, {units_of(c)});
  std::vector<UnitGradient> message;
  int64_t unit = 0;
  for (const int64_t n : c.sizes) {
    const int64_t next = unit + bucket_count(n, c.bucket);
    message.push_back({gradient(run, n, unlike), units.slice(unit, next)});
    unit = next;
  }
  run(gradient_units, message, rule, c.bucket);
}

void run_quantize(Run& run, const CodecCase& c, bool clips) {
  const Tensor& codes = run.output_as(DType::u8, {1 + code_bytes_of(c)});
  std::vector<CodedGradient> message = coded(run, c, units(run, units_of(c), c.levels), codes);
  for (CodedGradient& gradient : message)
    if (clips) gradient.clips = run.parameter({gradient.units.numel()}, 0.1, 1.6).to(DType::f32);
  run(quantize, message, c.bucket, c.levels);
}

/// The codes are compared only if `unlike` is finite, because then the units are finite.
void run_norm_quantize(Run& run, const CodecCase& c, BucketNorm norm, float unlike) {
  const Tensor& units = run.output_as(DType::f32, {units_of(c)});
  const Shape bytes = {1 + code_bytes_of(c)};
  const Tensor codes = std::isfinite(unlike) ? run.output_as(DType::u8, bytes)
                                             : Tensor::empty(bytes, {.dtype = DType::u8, .device = run.device()});
  run(norm_quantize, coded(run, c, units, codes, unlike), norm, c.bucket, c.levels);
}

/// Decodes three messages. Their own units start at byte 0, or they share units. Messages of odd sizes make the next
/// ones unaligned.
void run_dequantize(Run& run, const CodecCase& c, bool shared) {
  constexpr int64_t kRanks = 3;
  const int64_t count = units_of(c), own = shared ? 0 : 4 * count, bytes = own + code_bytes_of(c);
  const Tensor codes = run.integers({kRanks, bytes}, 256).to(Device{}).to(DType::u8);
  const Tensor values = units(run, kRanks * count, c.levels).to(Device{});
  for (int64_t rank = 0; rank < kRanks && own > 0; ++rank)
    std::memcpy(codes.data<uint8_t>() + rank * bytes, values.data<float>() + rank * count, static_cast<size_t>(own));
  std::vector<DecodedGradient> message;
  int64_t unit = 0, byte = own;
  for (const int64_t n : c.sizes) {
    message.push_back({run.changed(run.input({n}).to(DType::f32)), unit, byte});
    unit += bucket_count(n, c.bucket);
    byte += code_bytes(n, code_bits(c.levels));
  }
  run(dequantize_add, message, codes.to(run.device()), shared ? values.slice(0, count).to(run.device()) : Tensor(),
      c.bucket, c.levels);
}

void run_shorten(Run& run, int64_t n, int64_t at, ShortFloat format) {
  Tensor codes = run.output_as(DType::u8, {at + 2 * n}).slice(at, at + 2 * n);
  run(shorten, gradient(run, n), format, codes);
}

/// Three messages, each a multiple of `at` bytes. Their codes start behind `at` other bytes.
void run_widen(Run& run, int64_t n, int64_t at, ShortFloat format) {
  const int64_t bytes = (2 * at + 2 * n - 1) / at * at;
  const Tensor messages = run.integers({3, bytes}, 256).to(Device{}).to(DType::u8).to(run.device());
  run(widen_add, messages, at, format, run.changed(run.input({n}).to(DType::f32)));
}

void run_hadamard_encode(Run& run, int64_t n, int bits) {
  run(hadamard_encode, gradient(run, n), RandomKey{.seed = 0x123456789abcdef}, bits,
      run.output_as(DType::u8, {hadamard_bytes(n, bits)}));
}

/// Three messages with random codes and signs. Their codes start behind an odd number of other bytes.
void run_hadamard_decode(Run& run, int64_t n, int bits, bool is_mean) {
  constexpr int64_t kRanks = 3, kAt = 5;
  const int64_t bytes = kAt + hadamard_bytes(n, bits) + 1;
  const Tensor messages = run.integers({kRanks, bytes}, 256).to(Device{}).to(DType::u8);
  const std::vector<float> scales = run.input({kRanks * hadamard_buckets(n)}).to(Device{}).to_vector<float>();
  for (size_t i = 0; i < scales.size(); ++i) {
    const HadamardBucket place(n, bits, static_cast<int64_t>(i) / kRanks);
    const int64_t row = static_cast<int64_t>(i) % kRanks;
    std::memcpy(messages.data<uint8_t>() + row * bytes + kAt + place.scale_at, &scales[i], sizeof(float));
  }
  if (is_mean)
    run(hadamard_mean, messages.to(run.device()), kAt, bits, run.output_as(DType::f32, {n}));
  else
    run(hadamard_decode_add, messages.to(run.device()), kAt, bits, run.changed(run.input({n}).to(DType::f32)));
}

struct TopKBlockCase {
  const char* name;
  Shape shape;
  TopKBlockOptions options;
};
const TopKBlockCase kTopKBlockCases[] = {
    {"empty", {0, 3}, {}},
    {"one", {1}, {}},
    {"tiles", {128, 96}, {}},
    {"filters", {20, 6, 5, 5}, {}},
    {"runs and a rest", {2 * 4096 + 904}, {}},
    {"a rest of one", {65}, {.keep = 32, .run = 64, .short_in_full = true, .coded_values = false}},
    {"floats", {128, 64}, {.keep = 32, .run = 64, .short_in_full = true, .coded_values = false}},
    {"floats in runs", {100}, {.keep = 32, .run = 64, .short_in_full = true, .coded_values = false}},
    {"whole blocks", {9, 5}, {.keep = 64, .side = 8, .short_in_full = true}},
    {"blocks of one", {17}, {.keep = 1, .side = 1, .run = 1}},
    {"blocks longer than shared memory", {20'011}, {.keep = 700, .run = 10'000, .short_in_full = true}},
    {"many blocks", {20'000}, {.keep = 16, .run = 64, .short_in_full = true, .coded_values = false}},
    {"at most four values", {300}, {.run = 100}},
};

/// A gradient with many equal magnitudes.
Tensor with_ties(Run& run, const Shape& shape) {
  std::vector<float> values = run.input(shape).to(Device{}).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    if (i % 3 != 0) values[i] = std::round(8 * values[i]) / 8;
  return Tensor::from(shape, values);
}

void run_topk_block_encode(Run& run, const TopKBlockCase& c) {
  Tensor& broken = run.changed(Tensor::zeros({1}, {.device = run.device()}));
  run(topk_block_encode, with_ties(run, c.shape).to(run.device()), c.options,
      run.output_as(DType::u8, {TopKBlockLayout(c.shape, c.options).bytes()}), broken);
}

constexpr int64_t kTopKCodesAt = 5;
/// Three messages. Their codes start behind an odd number of other bytes.
Tensor topk_block_messages(Run& run, const TopKBlockCase& c) {
  constexpr int64_t kRanks = 3, kAt = kTopKCodesAt;
  const int64_t bytes = kAt + TopKBlockLayout(c.shape, c.options).bytes() + 1;
  Tensor messages = run.integers({kRanks, bytes}, 256).to(Device{}).to(DType::u8);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    Tensor codes = messages.reshape({kRanks * bytes}).slice(rank * bytes + kAt, (rank + 1) * bytes - 1);
    Tensor broken = Tensor::zeros({1});
    topk_block_encode.on(Target::reference)(with_ties(run, c.shape), c.options, codes, broken);
  }
  return messages.to(run.device());
}

void run_topk_block_decode(Run& run, const TopKBlockCase& c, float factor) {
  run(topk_block_decode_add, topk_block_messages(run, c), kTopKCodesAt, c.options, factor,
      run.changed(run.input(c.shape).to(DType::f32)));
}

void run_topk_block_mean(Run& run, const TopKBlockCase& c, MeanOver over) {
  run(topk_block_mean, topk_block_messages(run, c), kTopKCodesAt, c.options, over, run.output_as(DType::f32, c.shape));
}

/// The elements of each tensor of a message, and how many of them its code keeps.
struct SparseCase {
  const char* name;
  std::vector<std::pair<int64_t, int64_t>> sizes;
};
const SparseCase kSparseCases[] = {
    {"nothing", {{0, 0}}},
    {"one", {{1, 1}}},
    {"one of some", {{37, 1}}},
    {"all of several blocks", {{20'011, 20'011}}},
    {"all but one", {{4096, 4095}}},
    {"a share of several blocks", {{4096 + 1, 41}, {50'000, 5000}, {16'384 + 5, 9}}},
    {"2^20", {{1 << 20, 10'486}}},
    {"message", {{500, 5}, {0, 0}, {33, 1}, {1, 1}, {4100, 2050}, {20, 2}}},
    {"more tensors than a launch has", std::vector<std::pair<int64_t, int64_t>>(130, {40, 4})},
};

/// Calls body(elements, kept, first byte, byte behind the last) for the code of each tensor. The codes follow each
/// other, from an odd byte on. Returns the number of bytes.
template <class Body>
int64_t for_each_code(const SparseCase& c, int64_t (*bytes_of)(int64_t kept), Body body) {
  int64_t at = 1;
  for (const auto& [n, kept] : c.sizes) {
    const int64_t next = at + bytes_of(kept);
    body(n, kept, at, next);
    at = next;
  }
  return at;
}
int64_t bytes_of(const SparseCase& c, int64_t (*bytes)(int64_t kept)) {
  return for_each_code(c, bytes, [](auto...) {});
}

/// What the gradients of a message hold: `unlike` at some places, or everywhere if it is `is_constant`.
struct SparseValues {
  const char* name;
  bool is_constant = false;
  float unlike = -0.5f;
};
const SparseValues kSparseValues[] = {{"ties"},
                                      {"all equal", true},
                                      {"zeros", true, 0},
                                      {"infinite", false, -std::numeric_limits<float>::infinity()},
                                      {"NaN", false, std::numeric_limits<float>::quiet_NaN()}};
Tensor sparse_gradient(Run& run, int64_t n, const SparseValues& values) {
  std::vector<float> g = with_ties(run, {n}).to_vector<float>();
  for (size_t i = 0; i < g.size(); ++i)
    if (values.is_constant || i % 89 == 30) g[i] = values.unlike;
  return Tensor::from({n}, g);
}

void run_topk_encode(Run& run, const SparseCase& c, const SparseValues& values) {
  const Tensor& codes = run.output_as(DType::u8, {bytes_of(c, topk_bytes)});
  std::vector<TopKGradient> message;
  for_each_code(c, topk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t end) {
    message.push_back({sparse_gradient(run, n, values).to(run.device()), kept, codes.slice(begin, end)});
  });
  run(topk_encode, message);
}

/// Three messages, the first and the last from odd bytes on.
void run_topk_decode(Run& run, const SparseCase& c, float factor) {
  const int64_t bytes = bytes_of(c, topk_bytes) + 1 - bytes_of(c, topk_bytes) % 2;
  const Tensor messages = Tensor::zeros({3, bytes}, {.dtype = DType::u8});
  for (int64_t rank = 0; rank < 3; ++rank) {
    std::vector<TopKGradient> message;
    for_each_code(c, topk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t end) {
      message.push_back({sparse_gradient(run, n, kSparseValues[0]), kept,
                         messages.reshape({3 * bytes}).slice(rank * bytes + begin, rank * bytes + end)});
    });
    topk_encode.on(Target::reference)(message);
  }
  std::vector<TopKSum> sums;
  for_each_code(c, topk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t) {
    sums.push_back({run.changed(run.input({n}).to(DType::f32)), kept, begin});
  });
  run(topk_decode_add, sums, messages.to(run.device()), factor);
}

/// The codes with the same bytes for each NaN: arithmetic on a CPU keeps the bits of a NaN, and on a GPU it does not.
Tensor with_one_nan(const SparseCase& c, const Tensor& codes) {
  Tensor changed = codes.to(Device{});
  uint8_t* const bytes = changed.data<uint8_t>();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_code(c, randk_bytes, [&](int64_t, int64_t, int64_t begin, int64_t end) {
    for (int64_t at = begin + static_cast<int64_t>(sizeof(uint64_t)); at < end; at += sizeof nan) {
      float value = 0;
      std::memcpy(&value, bytes + at, sizeof value);
      if (std::isnan(value)) std::memcpy(bytes + at, &nan, sizeof nan);
    }
  });
  return changed;
}

/// NaN equals any NaN. All other bytes are compared.
void run_randk_encode(Run& run, const SparseCase& c, const SparseValues& values) {
  Tensor& codes = run.output_as(DType::u8, {bytes_of(c, randk_bytes)});
  std::vector<RandKGradient> message;
  for_each_code(c, randk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t end) {
    RandomKey key = kKey;
    key.tensor = static_cast<uint32_t>(message.size());
    message.push_back({sparse_gradient(run, n, values).to(run.device()), key, kept, codes.slice(begin, end)});
  });
  run(randk_encode, message);
  if (std::isnan(values.unlike)) codes = with_one_nan(c, codes);
}

/// Three messages with other seeds, the first and the last from odd bytes on.
void run_randk_decode(Run& run, const SparseCase& c) {
  const int64_t bytes = bytes_of(c, randk_bytes) + 1 - bytes_of(c, randk_bytes) % 2;
  const Tensor messages = Tensor::zeros({3, bytes}, {.dtype = DType::u8});
  for (uint32_t rank = 0; rank < 3; ++rank) {
    std::vector<RandKGradient> message;
    for_each_code(c, randk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t end) {
      RandomKey key = kKey;
      key.owner = rank;
      message.push_back({sparse_gradient(run, n, kSparseValues[0]), key, kept,
                         messages.reshape({3 * bytes}).slice(rank * bytes + begin, rank * bytes + end)});
    });
    randk_encode.on(Target::reference)(message);
  }
  std::vector<RandKSum> sums;
  for_each_code(c, randk_bytes, [&](int64_t n, int64_t kept, int64_t begin, int64_t) {
    sums.push_back({run.changed(run.input({n}).to(DType::f32)), kept, begin});
  });
  run(randk_decode_add, sums, messages.to(run.device()));
}

struct EntropyCase {
  const char* name;
  std::vector<int64_t> sizes;  // of the tensors of a message
  int64_t levels;
  double nonzero = 0.5;   // share of elements that are not zero; their levels are uniform
  bool has_rare = false;  // every 47th element has a level of its own
  int64_t prefix = 7;     // bytes before the codes of tensor i, times i % 3
};
const EntropyCase kEntropyCases[] = {
    {"nothing", {0}, 1},
    {"one element", {1}, 1},
    {"sparse Elias code", {1023}, 7, 0.01},
    {"dense Elias code", {200}, 1, 0.4},
    {"all zero", {1000, 70'000}, 1, 0},
    {"planes", {300, 31}, 7, 1},
    {"rANS of a short tensor", {1023, 1024, 5000}, 1},
    {"longest tensor of one stream", {65'535}, 3},
    {"one stream, because the entropy is low", {70'001}, 1, 0.01},
    {"blocks and a rest", {2 * 65'536 + 4321}, 7, 0.95},
    {"longer blocks", {300'007}, 1, 0.6},
    {"rare symbols", {140'000}, 2000, 0.6, true},
    {"wide levels", {3000, 70'000}, 32767, 1},
    {"message", {500, 0, 33, 100'000, 1, 4100, 20}, 1, 0.3},
    {"short tensors with long prefixes", {500, 33, 20, 4100}, 1, 0.3, false, 2501},
    {"more tensors than a launch has", std::vector<int64_t>(130, 40), 1},
};

const EntropyCase kEliasCases[] = {
    {"nothing", {0}, 1},
    {"one element", {1}, 1},
    {"all zero", {1, 1000, 70'000}, 1, 0},
    {"sparse", {1023, 30'011}, 7, 0.02},
    {"long gaps", {100'003}, 2000, 0.0002},
    {"dense", {200, 1024, 1025}, 1, 0.4},
    {"sparse and dense runs", {20'000}, 7, 0.3, true},
    {"several groups of spans", {40'000}, 7, 0.95},
    {"wide levels", {3000}, 32767, 1},
    {"message", {500, 0, 33, 10'000, 1, 4100, 20}, 1, 0.3},
    {"short tensors with long prefixes", {500, 33, 20, 4100}, 1, 0.3, false, 2501},
    {"more tensors than a launch has", std::vector<int64_t>(130, 40), 1},
};

/// Bytes, and the tensors of a message in them, from an odd byte on: prefixes of several lengths, and bit planes.
struct EntropyMessage {
  EntropyMessage(const EntropyCase& c, Tensor made) : bytes(std::move(made)) {
    int64_t at = 1;
    const auto take = [&](int64_t count) {
      at += count;
      return bytes.slice(at - count, at);
    };
    for (const int64_t n : c.sizes) {
      const Tensor prefix = take(n == 0 ? 0 : std::ssize(tensors) % 3 * c.prefix);
      tensors.push_back({n, take(code_bytes(n, code_bits(c.levels))), prefix});
    }
  }
  static int64_t bytes_for(const EntropyCase& c) {
    int64_t count = 1;
    for (size_t i = 0; i < c.sizes.size(); ++i)
      count +=
          code_bytes(c.sizes[i], code_bits(c.levels)) + (c.sizes[i] == 0 ? 0 : static_cast<int64_t>(i % 3) * c.prefix);
    return count;
  }

  Tensor bytes;
  std::vector<PackedTensor> tensors;
};

/// A message on the CPU with random levels and prefixes.
EntropyMessage entropy_message(Run& run, const EntropyCase& c) {
  EntropyMessage message(c, run.integers({EntropyMessage::bytes_for(c)}, 256).to(Device{}).to(DType::u8));
  for (const PackedTensor& tensor : message.tensors) {
    std::vector<float> values = run.input({tensor.numel}).to(Device{}).to_vector<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i] / c.nonzero, most = c.has_rare ? 1 : static_cast<double>(c.levels);
      values[i] = std::abs(x) < 1 ? static_cast<float>(std::round(std::copysign(0.5 + std::abs(x) * most, x))) : 0;
      if (c.has_rare && i % 47 == 0) values[i] = static_cast<float>(static_cast<int64_t>(i / 47 % 3900) - 1950);
    }
    for (float& value : values) value = std::clamp(value, -static_cast<float>(c.levels), static_cast<float>(c.levels));
    const CodedGradient coded = {Tensor::from({tensor.numel}, values), Tensor::full({bucket_count(tensor.numel, 0)}, 1),
                                 tensor.codes, kKey};
    quantize.on(Target::reference)({&coded, 1}, 0, c.levels);
  }
  return message;
}

/// The kernels of a packing, and the most bytes of a tensor's code.
struct EntropyKernels {
  decltype(entropy_pack)& pack;
  decltype(entropy_unpack)& unpack;
  int64_t (*most)(int64_t numel, int64_t levels);
};
const EntropyKernels kEntropy = {entropy_pack, entropy_unpack, most_entropy_bytes},
                     kElias = {elias_pack, elias_unpack, most_elias_bytes};

/// Room for the packed message, of which the last bytes are not needed.
Tensor packed_room(const EntropyKernels& of, const EntropyCase& c, const EntropyMessage& message) {
  int64_t bytes = 1;
  for (const auto& [numel, codes, prefix] : message.tensors) bytes += prefix.numel() + of.most(numel, c.levels);
  return Tensor::full({bytes}, 0, {.dtype = DType::u8});
}

void run_entropy_pack(Run& run, const EntropyKernels& of, const EntropyCase& c) {
  const EntropyMessage message(c, entropy_message(run, c).bytes.to(run.device()));
  Tensor& bytes = run.changed(packed_room(of, c, message).to(run.device()));
  run(of.pack, message.tensors, c.levels, bytes, run.output_as(DType::i64, {std::ssize(c.sizes)}));
}

void run_entropy_unpack(Run& run, const EntropyKernels& of, const EntropyCase& c) {
  const EntropyMessage message = entropy_message(run, c);
  Tensor bytes = packed_room(of, c, message), lengths = Tensor::empty({std::ssize(c.sizes)}, {.dtype = DType::i64});
  of.pack.on(Target::reference)(message.tensors, c.levels, bytes, lengths);
  const auto found = lengths.to_vector<int64_t>();
  bytes = bytes.slice(0, std::accumulate(found.begin(), found.end(), int64_t{0}));
  const EntropyMessage unpacked(c, run.output_as(DType::u8, {EntropyMessage::bytes_for(c)}));
  run(of.unpack, unpacked.tensors, c.levels, bytes.to(run.device()), found);
}

/// Room for the prefixes and packed numbers.
int64_t trit_room(const EntropyMessage& message) {
  int64_t count = 0;
  for (const auto& [numel, codes, prefix] : message.tensors) count += prefix.numel() + packed_trit_bytes(numel);
  return count;
}

void run_trit_pack(Run& run, const EntropyCase& c) {
  const EntropyMessage message(c, entropy_message(run, c).bytes.to(run.device()));
  run(trit_pack, message.tensors, run.output_as(DType::u8, {trit_room(message)}));
}

void run_trit_unpack(Run& run, const EntropyCase& c) {
  const EntropyMessage message = entropy_message(run, c);
  Tensor bytes = Tensor::empty({trit_room(message)}, {.dtype = DType::u8});
  trit_pack.on(Target::reference)(message.tensors, bytes);
  const EntropyMessage unpacked(c, run.output_as(DType::u8, {EntropyMessage::bytes_for(c)}));
  run(trit_unpack, unpacked.tensors, bytes.to(run.device()));
}

/// Sizes of the tensors of a message for error feedback.
using Sizes = std::vector<int64_t>;
const Sizes kFeedbackSizes[] = {{1}, {37}, {4096, 1, 8195}, {70'001, 16}, {140'001}, Sizes(130, 40)};

/// In some messages the sums are also residuals.
void run_add_residual(Run& run, const Sizes& sizes, double decay, bool is_difference) {
  std::vector<CorrectedGradient> message;
  for (const int64_t n : sizes) {
    const Tensor given = gradient(run, n), minus = is_difference ? gradient(run, n) : Tensor();
    const Tensor residual = run.changed(gradient(run, n));
    message.push_back({given, minus, residual, sizes.size() == 1 ? run.output_as(DType::f32, {n}) : residual});
  }
  run(add_residual, message, decay);
}

/// Decoded tensors that are zero, near to what was encoded, and far from it.
void run_nearest_factors(Run& run, const Sizes& sizes) {
  std::vector<DecodedPair> message;
  for (const int64_t n : sizes) {
    const Tensor whole = gradient(run, n);
    std::vector<float> decoded = whole.to_vector<float>();
    for (size_t i = 0; i < decoded.size(); ++i)
      decoded[i] = message.size() % 3 == 1 ? 0 : i % 2 == 0 ? decoded[i] * 3 : decoded[i] * 0.5f;
    message.push_back({whole, Tensor::from({n}, decoded).to(run.device())});
  }
  run(nearest_factors, message, run.output_as(DType::f32, {std::ssize(sizes)}));
}

/// The bytes of the factors are at odd addresses.
void run_add_scaled(Run& run, const Sizes& sizes, bool has_factors, double sign) {
  std::vector<ScaledAddition> message;
  for (const int64_t n : sizes) message.push_back({gradient(run, n), run.changed(run.input({n}).to(DType::f32))});
  const auto count = std::ssize(sizes);
  const Tensor factors = run.parameter({count}, 0.1, 0.9).to(Device{}).to(DType::f32);
  const Tensor bytes = Tensor::empty({1 + 4 * count}, {.dtype = DType::u8});
  std::memcpy(bytes.data<uint8_t>() + 1, factors.data<float>(), factors.bytes());
  run(add_scaled, message, has_factors ? bytes.to(run.device()).slice(1, bytes.numel()) : Tensor(), sign);
}

/// A tensor of rows.
struct RowsCase {
  int64_t rows, width;
};
using OneBitCase = std::vector<RowsCase>;
const OneBitCase kOneBitCases[] = {{{1, 1}},
                                   {{1, 37}, {0, 5}, {20, 25}, {3, 1}},
                                   {{5, 4099}, {1, 10}},
                                   {{300, 7}, {1, 5000}},
                                   OneBitCase(130, {3, 13})};

int64_t onebit_bytes_of(const OneBitCase& c) {
  int64_t count = 0;
  for (const auto& [rows, width] : c) count += onebit_bytes(rows * width, width);
  return count;
}

/// The codes follow each other, from an odd byte on.
void run_onebit_encode(Run& run, const OneBitCase& c) {
  const Tensor& codes = run.output_as(DType::u8, {1 + onebit_bytes_of(c)});
  std::vector<OneBitGradient> message;
  int64_t at = 1;
  for (const auto& [rows, width] : c) {
    const int64_t next = at + onebit_bytes(rows * width, width);
    message.push_back({gradient(run, rows * width), width, codes.slice(at, next)});
    at = next;
  }
  run(onebit_encode, message);
}

/// Three messages, the first and the last from odd bytes on.
void run_onebit_decode(Run& run, const OneBitCase& c) {
  const int64_t bytes = 1 + onebit_bytes_of(c) + onebit_bytes_of(c) % 2;
  const Tensor messages = Tensor::empty({3, bytes}, {.dtype = DType::u8});
  for (int64_t rank = 0; rank < 3; ++rank) {
    std::vector<OneBitGradient> message;
    int64_t at = rank * bytes + 1;
    for (const auto& [rows, width] : c) {
      const int64_t next = at + onebit_bytes(rows * width, width);
      message.push_back({run.input({rows * width}).to(Device{}).to(DType::f32), width,
                         messages.reshape({3 * bytes}).slice(at, next)});
      at = next;
    }
    onebit_encode.on(Target::reference)(message);
  }
  std::vector<OneBitSum> sums;
  int64_t at = 1;
  for (const auto& [rows, width] : c) {
    sums.push_back({run.changed(run.input({rows * width}).to(DType::f32)), width, at});
    at += onebit_bytes(rows * width, width);
  }
  run(onebit_decode_add, sums, messages.to(run.device()));
}

/// Pieces of 0 to 8000 bytes, in another order.
void run_copy_bytes(Run& run) {
  constexpr int64_t kBytes = 20'000;
  const Tensor from = run.integers({kBytes}, 256).to(Device{}).to(DType::u8).to(run.device());
  const Tensor& to = run.output_as(DType::u8, {kBytes});
  std::vector<CopiedBytes> copies;
  for (int64_t begin = 0, length = 0; begin < kBytes; begin += length, length = 3 * length / 2 + 1) {
    const int64_t end = std::min(kBytes, begin + length);
    copies.push_back({from.slice(begin, end), to.slice(kBytes - end, kBytes - begin)});
  }
  run(copy_bytes, copies);
}

}  // namespace

// Runs in f32 only. The oracle in double precision gets the same floats, and every target must give exactly its bits.
void add_codec_cases(ParityTable& table) {
  const ParityOptions exact{.bf16 = false, .channels_last = false, .exact = true};
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const CodecCase& c : kCodecCases) {
    for (const float unlike : {0.0f, -kInfinity})
      table.push_back({&gradient_statistics, c.name, [=](Run& run) { run_statistics(run, c, unlike); }, exact});
    for (const UnitRule& rule : {UnitRule{BucketNorm::l2, c.levels}, UnitRule{BucketNorm::max, c.levels},
                                 UnitRule{BucketNorm::clipped, 1, 2.5}, UnitRule{BucketNorm::deviations, 1, 0.7}})
      for (const float unlike : {0.0f, kInfinity, kNaN})
        table.push_back({&gradient_units, c.name, [=](Run& run) { run_units(run, c, rule, unlike); }, exact});
    for (const bool clips : {false, true})
      table.push_back({&quantize, c.name, [=](Run& run) { run_quantize(run, c, clips); }, exact});
    for (const BucketNorm norm : {BucketNorm::l2, BucketNorm::max})
      for (const float unlike : {0.0f, kInfinity, kNaN})
        table.push_back({&norm_quantize, c.name, [=](Run& run) { run_norm_quantize(run, c, norm, unlike); }, exact});
    for (const bool shared : {true, false})
      table.push_back({&dequantize_add, c.name, [=](Run& run) { run_dequantize(run, c, shared); }, exact});
  }
  for (const int64_t n : {0, 1, 2, 7, 16, 32, 100, 4096, 4097, 4096 + 20, 4096 + 33, 3 * 4096 + 2111})
    for (int bits = 1; bits <= kMostHadamardBits; ++bits) {
      table.push_back({&hadamard_encode, "gradient", [=](Run& run) { run_hadamard_encode(run, n, bits); }, exact});
      table.push_back(
          {&hadamard_decode_add, "messages", [=](Run& run) { run_hadamard_decode(run, n, bits, false); }, exact});
      table.push_back({&hadamard_mean, "messages", [=](Run& run) { run_hadamard_decode(run, n, bits, true); }, exact});
    }
  for (const TopKBlockCase& c : kTopKBlockCases) {
    table.push_back({&topk_block_encode, c.name, [=](Run& run) { run_topk_block_encode(run, c); }, exact});
    for (const float factor : {1.0f, -1.0f, 0.3f})
      table.push_back(
          {&topk_block_decode_add, c.name, [=](Run& run) { run_topk_block_decode(run, c, factor); }, exact});
    for (const MeanOver over : {MeanOver::messages, MeanOver::senders})
      table.push_back({&topk_block_mean, c.name, [=](Run& run) { run_topk_block_mean(run, c, over); }, exact});
  }
  for (const SparseCase& c : kSparseCases) {
    const bool is_long = c.sizes.front().first > 100'000;
    for (const SparseValues& values : std::span(kSparseValues).first(is_long ? 1 : std::size(kSparseValues))) {
      const std::string name = join({c.name, ", ", values.name});
      table.push_back({&topk_encode, name, [=](Run& run) { run_topk_encode(run, c, values); }, exact});
      table.push_back({&randk_encode, name, [=](Run& run) { run_randk_encode(run, c, values); }, exact});
    }
    for (const float factor : {1.0f, -1.0f, 0.3f})
      table.push_back({&topk_decode_add, c.name, [=](Run& run) { run_topk_decode(run, c, factor); }, exact});
    table.push_back({&randk_decode_add, c.name, [=](Run& run) { run_randk_decode(run, c); }, exact});
  }
  for (const EntropyCase& c : kEntropyCases) {
    table.push_back({&entropy_pack, c.name, [=](Run& run) { run_entropy_pack(run, kEntropy, c); }, exact});
    table.push_back({&entropy_unpack, c.name, [=](Run& run) { run_entropy_unpack(run, kEntropy, c); }, exact});
    if (c.levels != 1) continue;
    table.push_back({&trit_pack, c.name, [=](Run& run) { run_trit_pack(run, c); }, exact});
    table.push_back({&trit_unpack, c.name, [=](Run& run) { run_trit_unpack(run, c); }, exact});
  }
  for (const EntropyCase& c : kEliasCases) {
    table.push_back({&elias_pack, c.name, [=](Run& run) { run_entropy_pack(run, kElias, c); }, exact});
    table.push_back({&elias_unpack, c.name, [=](Run& run) { run_entropy_unpack(run, kElias, c); }, exact});
  }
  for (const OneBitCase& c : kOneBitCases) {
    table.push_back({&onebit_encode, "message", [=](Run& run) { run_onebit_encode(run, c); }, exact});
    table.push_back({&onebit_decode_add, "messages", [=](Run& run) { run_onebit_decode(run, c); }, exact});
  }
  table.push_back({&copy_bytes, "pieces", run_copy_bytes, exact});
  for (const Sizes& sizes : kFeedbackSizes) {
    for (const double decay : {1.0, 0.95})
      for (const bool is_difference : {false, true})
        table.push_back({&add_residual, is_difference ? "difference" : "gradient",
                         [=](Run& run) { run_add_residual(run, sizes, decay, is_difference); }, exact});
    table.push_back({&nearest_factors, "message", [=](Run& run) { run_nearest_factors(run, sizes); }, exact});
    for (const bool has_factors : {false, true})
      for (const double sign : {1.0, -1.0})
        table.push_back({&add_scaled, has_factors ? "factors" : "no factors",
                         [=](Run& run) { run_add_scaled(run, sizes, has_factors, sign); }, exact});
  }
  for (const ShortFloat format : {ShortFloat::half, ShortFloat::brain})
    for (const int64_t n : {0, 1, 37, 70'001})
      for (const int64_t at : {2, 4, 8, 16}) {
        const std::string name = join({format == ShortFloat::half ? "half" : "bfloat16", ", ", n, " from byte ", at});
        table.push_back({&shorten, name, [=](Run& run) { run_shorten(run, n, at, format); }, exact});
        table.push_back({&widen_add, name, [=](Run& run) { run_widen(run, n, at, format); }, exact});
      }
}

}  // namespace tern::test
