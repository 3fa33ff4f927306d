#include <utility>
#include <vector>

#include "tern/kernels/cuda/entropy.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/provide.h"

// Where an element's code begins is known only when the one before it has been read. But what follows a bit, if a code
// begins there, depends on a few bits alone. So blocks first find the way from each of the first bits of a span to the
// next span, then those ways are followed, and then blocks read the codes of their spans.

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int kSpan = 2048;  // bits
/// The most bits of an element's code, and of the front.
constexpr int kMostBits = omega_bits(~0u) + 1 + omega_bits(kMostLevels);
static_assert(1 + omega_bits(uint64_t{1} << 32) < kMostBits);
constexpr int kSpanWords = kSpan / 32 + 6;  // with what a code takes from the next span, even if it is not valid
/// Spans whose ways are joined, so that few are left to follow one after the other.
constexpr int kGroupSpans = 64;

/// What some codes pass: elements, and themselves.
struct Passed {
  uint32_t elements, codes;
};
/// The same, and the bit behind them.
struct Way : Passed {
  uint32_t next;
};
/// The sum, or the largest number if it is larger: no element has that number.
__device__ uint32_t add(uint32_t a, uint32_t b) { return a + b < a ? ~0u : a + b; }
__device__ Passed operator+(const Passed& a, const Passed& b) {
  return {add(a.elements, b.elements), add(a.codes, b.codes)};
}
__device__ Way join(const Passed& first, const Way& then) { return {first + then, then.next}; }

/// A tensor's Elias code with its prefix, and what becomes of it.
struct Unpacked {
  const uint8_t* bytes;
  uint8_t *codes, *prefix;
  int64_t length, numel, prefix_bytes;
  Way* front = nullptr;                   // its `codes` is the number of codes that follow
  Way *ways = nullptr, *group = nullptr;  // from each of the first bits of a span, or of a group of spans, to the next
  Way* entries = nullptr;                 // from the first element to each span
  uint16_t* values = nullptr;             // the code (codec_code) of each element, at first 0

  __device__ const uint8_t* code() const { return bytes + prefix_bytes; }
  __device__ bool is_dense() const { return *code() >> 7 != 0; }
  constexpr int64_t spans() const { return (8 * (length - prefix_bytes) + kSpan - 1) / kSpan; }
  constexpr int64_t groups() const { return (spans() + kGroupSpans - 1) / kGroupSpans; }
  constexpr int64_t scratch_bytes() const {
    constexpr int64_t kWay = sizeof(Way), kValue = sizeof(uint16_t);
    return numel * kValue + (spans() * (kMostBits + 1) + groups() * kMostBits + 1) * kWay;
  }
};
using Table = ItemTable<Unpacked>;

/// The bits of a span and the next ones; zeros beyond the end. All threads of the block must make it together.
struct Bits {
  __device__ Bits(const Unpacked& of, int64_t span, uint32_t* memory) : words(memory) {
    const int64_t first = span * (kSpan / 8), end = of.length - of.prefix_bytes;
    for (int i = static_cast<int>(threadIdx.x); i < kSpanWords; i += kThreads) {
      uint32_t word = 0;
      for (int64_t at = first + 4 * i; at < first + 4 * i + 4; ++at) word = word << 8 | (at < end ? of.code()[at] : 0u);
      memory[i] = word;
    }
    __syncthreads();
  }
  /// 64 bits from a bit on, the first one highest.
  __device__ uint64_t from(int at) const {
    const uint32_t* const word = words + at / 32;
    const int shift = at % 32;
    const uint64_t two = uint64_t{word[0]} << 32 | word[1];
    return shift == 0 ? two : two << shift | word[2] >> (32 - shift);
  }
  const uint32_t* words;
};

/// The number of the omega code at a bit, and moves behind it; 0 if the number has more than 33 bits.
__device__ uint64_t read_omega(const Bits& bits, int& at) {
  for (uint64_t number = 1;;) {
    const uint64_t next = bits.from(at);
    if (next >> 63 == 0) {
      ++at;
      return number;
    }
    if (number > 32) return 0;
    at += static_cast<int>(number) + 1;
    number = next >> (63 - number);
  }
}

/// The code of an element.
struct Element {
  uint32_t gap, code;  // its distance from the last one, and its level and sign (codec_code)
  int bits;
};
/// Reads the code at a bit. One that is not valid leads beyond all elements.
__device__ Element read_element(const Bits& bits, int at, bool is_dense) {
  int next = at;
  const auto sign = [&] { return static_cast<uint32_t>(bits.from(next++) >> 63); };
  const uint64_t gap = is_dense ? 1 : read_omega(bits, next);
  const uint32_t first = is_dense ? 0 : sign();
  const uint64_t number = read_omega(bits, next), level = is_dense ? number - 1 : number;
  if (gap == 0 || gap > ~0u || number == 0 || level > kMostLevels) return {~0u, 0, 1};
  const uint32_t code = static_cast<uint32_t>(level) << 1 | (is_dense && level != 0 ? sign() : first);
  return {static_cast<uint32_t>(gap), code, next - at};
}

/// The front of a code.
__device__ Way read_front(const Bits& bits, bool is_dense, int64_t numel) {
  if (is_dense) return {{0, static_cast<uint32_t>(numel)}, 1};
  int next = 1;
  const uint64_t codes = read_omega(bits, next) - 1;
  if (codes > static_cast<uint64_t>(numel)) return {{0, 0}, 1};
  return {{0, static_cast<uint32_t>(codes)}, static_cast<uint32_t>(next)};
}

constexpr int kEach = kSpan / kThreads;  // bits of a thread

/// ways[b] = the way of the code at bit b. All threads of the block must call it together.
__device__ void find_ways(const Bits& bits, bool is_dense, Way* ways) {
  for (int b = static_cast<int>(threadIdx.x); b < kSpan; b += kThreads) {
    const Element element = read_element(bits, b, is_dense);
    ways[b] = {{element.gap, 1}, static_cast<uint32_t>(b + element.bits)};
  }
  __syncthreads();
}

/// What the codes before a bit pass, if a code begins there; if none does, `codes` is this.
constexpr uint32_t kNotReached = ~0u;

/// Each way goes on to the end of the way that begins behind it. Before that, if `Marks`, the bit behind each way from
/// a bit that is reached is reached too. All threads of the block must call it together.
template <bool Marks>
__device__ void join_ways(Way* ways, Passed* passed) {
  Way own[kEach];
  Passed reached[kEach];
  uint32_t at[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int b = static_cast<int>(threadIdx.x) + k * kThreads;
    own[k] = ways[b];
    at[k] = kSpan;
    if (own[k].next >= kSpan) continue;
    if (Marks && passed[b].codes != kNotReached) {
      at[k] = own[k].next;
      reached[k] = passed[b] + own[k];
    }
    own[k] = join(own[k], ways[own[k].next]);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    ways[threadIdx.x + k * kThreads] = own[k];
    if (Marks && at[k] != kSpan) passed[at[k]] = reached[k];
  }
  __syncthreads();
}

/// Finds the ways from a span to the next.
__global__ void __launch_bounds__(kThreads) way_kernel(const __grid_constant__ Table table) {
  __shared__ uint32_t words[kSpanWords];
  __shared__ Way ways[kSpan];
  const auto place = table.place();
  const Unpacked& of = place.entry;
  const bool is_dense = of.is_dense();
  const Bits bits(of, place.block, words);
  if (place.block == 0 && threadIdx.x == 0) *of.front = read_front(bits, is_dense, of.numel);
  find_ways(bits, is_dense, ways);
  for (int codes = 1; codes < kSpan; codes *= 2) join_ways<false>(ways, nullptr);
  for (int b = static_cast<int>(threadIdx.x); b < kMostBits; b += kThreads) {
    Way way = ways[b];
    way.next -= kSpan;
    of.ways[place.block * kMostBits + b] = way;
  }
}

constexpr int kGroupThreads = (kMostBits + kWarp - 1) / kWarp * kWarp;

/// Joins the ways of the spans of a group. The last group of a tensor needs none.
__global__ void __launch_bounds__(kGroupThreads) group_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Unpacked& of = place.entry;
  if (threadIdx.x >= kMostBits) return;
  Way way = {{0, 0}, threadIdx.x};
  for (int64_t span = place.block * kGroupSpans; span < (place.block + 1) * kGroupSpans; ++span)
    way = join(way, of.ways[span * kMostBits + way.next]);
  of.group[place.block * kMostBits + threadIdx.x] = way;
}

/// A thread follows the ways to a group, and to each of its spans.
__global__ void __launch_bounds__(kThreads) entry_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Unpacked& of = place.entry;
  const int64_t group = place.block * kThreads + threadIdx.x;
  if (group >= of.groups()) return;
  Way way = {{0, 0}, of.front->next};
  for (int64_t before = 0; before < group; ++before) way = join(way, of.group[before * kMostBits + way.next]);
  const int64_t end = std::min((group + 1) * kGroupSpans, of.spans());
  for (int64_t span = group * kGroupSpans; span < end; ++span) {
    of.entries[span] = way;
    way = join(way, of.ways[span * kMostBits + way.next]);
  }
}

/// Reads the codes of a span.
__global__ void __launch_bounds__(kThreads) value_kernel(const __grid_constant__ Table table) {
  __shared__ uint32_t words[kSpanWords];
  __shared__ Way ways[kSpan];
  __shared__ Passed passed[kSpan];
  const auto place = table.place();
  const Unpacked& of = place.entry;
  const bool is_dense = of.is_dense();
  const Bits bits(of, place.block, words);
  for (int b = static_cast<int>(threadIdx.x); b < kSpan; b += kThreads) passed[b].codes = kNotReached;
  find_ways(bits, is_dense, ways);
  const Way entry = of.entries[place.block];
  if (threadIdx.x == 0) passed[entry.next] = entry;
  __syncthreads();
  for (int codes = 1; codes < kSpan; codes *= 2) join_ways<true>(ways, passed);
  const uint32_t count = of.front->codes;
  for (int b = static_cast<int>(threadIdx.x); b < kSpan; b += kThreads) {
    if (passed[b].codes >= count) continue;
    const Element element = read_element(bits, b, is_dense);
    const uint32_t number = add(passed[b].elements, element.gap);  // from 1
    if (number <= of.numel) of.values[number - 1] = static_cast<uint16_t>(element.code);
  }
}

/// Groups of elements for each block.
constexpr int64_t kPlaneGroups = 512;
int64_t plane_blocks(const Unpacked& of) { return (of.numel + kPlaneGroups * kWarp - 1) / (kPlaneGroups * kWarp); }

/// A warp makes the planes of a group of elements.
__global__ void __launch_bounds__(kThreads) plane_kernel(int bits, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Unpacked& of = place.entry;
  const int64_t begin = place.block * kPlaneGroups, groups = (of.numel + kWarp - 1) / kWarp;
  copy_share(of.prefix, of.bytes, of.prefix_bytes, place.block, (groups + kPlaneGroups - 1) / kPlaneGroups);
  for (int64_t group = begin + threadIdx.x / kWarp; group < std::min(begin + kPlaneGroups, groups);
       group += kThreads / kWarp) {
    const int64_t i = group * kWarp + lane_id();
    store_codes(of.codes, of.numel, bits, group, i < of.numel ? of.values[i] : 0u);
  }
}

/// Unpacks tensors that fit into one table.
void unpack(Device device, int bits, std::span<Unpacked> tensors) {
  const char* const operation = "elias_unpack";
  int64_t spans = 0, groups = 0, elements = 0;
  for (const Unpacked& of : tensors) {
    spans += of.spans();
    groups += of.groups();
    elements += of.numel;
  }
  Scratch scratch(device);
  const Tensor zeros =
      Tensor::zeros({elements * static_cast<int64_t>(sizeof(uint16_t))}, {.dtype = DType::u8, .device = device});
  auto* values = reinterpret_cast<uint16_t*>(zeros.data<uint8_t>());
  Way *front = scratch.take<Way>(std::ssize(tensors)), *entries = scratch.take<Way>(spans),
      *ways = scratch.take<Way>(spans * kMostBits), *group = scratch.take<Way>(groups * kMostBits);
  for (Unpacked& of : tensors) {
    of.front = front++;
    of.entries = std::exchange(entries, entries + of.spans());
    of.ways = std::exchange(ways, ways + of.spans() * kMostBits);
    of.group = std::exchange(group, group + of.groups() * kMostBits);
    of.values = std::exchange(values, values + of.numel);
  }
  const auto run = [&](auto blocks_of, int threads, auto kernel, auto... arguments) {
    for_each_table(std::span<const Unpacked>(tensors), blocks_of, [&](const Table& table) {
      launch(operation, device, {.blocks = table.grid().blocks, .threads = dim3(static_cast<unsigned>(threads))},
             kernel, arguments..., table);
    });
  };
  const auto each_span = [](const Unpacked& of) { return of.spans(); };
  run(each_span, kThreads, way_kernel);
  run([](const Unpacked& of) { return of.groups() - 1; }, kGroupThreads, group_kernel);
  run([](const Unpacked& of) { return (of.groups() + kThreads - 1) / kThreads; }, kThreads, entry_kernel);
  run(each_span, kThreads, value_kernel);
  run(plane_blocks, kThreads, plane_kernel, bits);
}

/// Scratch memory of the tensors that are unpacked at once, unless one tensor needs more.
constexpr int64_t kBytesAtOnce = int64_t{1} << 28;

void elias_unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                  std::span<const int64_t> lengths) {
  check_unpacking("elias_unpack", message, levels, bytes, lengths);
  std::vector<Unpacked> entries;
  int64_t scratch = 0;
  const auto unpack_entries = [&] {
    if (!entries.empty()) unpack(bytes.device(), code_bits(levels), entries);
    entries.clear();
    scratch = 0;
  };
  const uint8_t* next = bytes.data<uint8_t>();
  for (size_t i = 0; i < message.size(); next += lengths[i++]) {
    const auto& [numel, codes, prefix] = message[i];
    if (numel == 0) continue;
    const Unpacked entry = {next, codes.data<uint8_t>(), prefix.data<uint8_t>(), lengths[i], numel, prefix.numel()};
    if (entries.size() == Table::kMost || scratch + entry.scratch_bytes() > kBytesAtOnce) unpack_entries();
    entries.push_back(entry);
    scratch += entry.scratch_bytes();
  }
  unpack_entries();
}

}  // namespace

void provide_elias_unpack() { kernels::elias_unpack.provide(Target::cuda, elias_unpack); }

}  // namespace tern::cuda
