#include "tern/kernels/randk.h"

#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/recorded_step.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/provide.h"

// Floyd's algorithm in any order: step `last` finds its draw taken if an earlier step drew the same element; or if the
// draw is itself a step, whose own draw was taken. So a thread needs only the first step that drew each element, and
// follows steps downwards, some few even if all elements are kept.

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int kWarps = kThreads / kWarp, kPerThread = 8;

struct Drawn {
  const float* g = nullptr;  ///< to be encoded, or null
  float* sum = nullptr;      ///< of what is decoded, or null
  uint8_t* codes = nullptr;
  int64_t numel = 0, kept = 0;
  double scale = 1;
  RandomKey key = {};              ///< of the seed, if it is not in the code yet
  uint32_t* first_step = nullptr;  ///< that drew an element; for elements that none drew, anything
  uint32_t* drawn = nullptr;       ///< a bit for each element
  uint32_t* counts = nullptr;      ///< of the drawn elements of each block

  __host__ __device__ int64_t words() const { return (numel + kWarp - 1) / kWarp; }
  /// A block has kThreads words of bits.
  __host__ __device__ int64_t blocks() const { return (words() + kThreads - 1) / kThreads; }
  /// Blocks with a thread for kPerThread steps, and for as many words.
  int64_t step_blocks() const {
    return (std::max(kept, words()) + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  }
};
using Table = ItemTable<Drawn>;

__device__ uint64_t seed_in(const uint8_t* codes) {
  return load_bytes(codes, 4) | uint64_t{load_bytes(codes + 4, 4)} << 32;
}

/// Calls body(number) for the numbers of this thread below `count`.
template <class Body>
__device__ void for_own(int64_t block, int64_t count, Body body) {
  const int64_t first = block * kThreads * kPerThread + threadIdx.x;
  for (int k = 0; k < kPerThread; ++k)
    if (const int64_t i = first + k * kThreads; i < count) body(i);
}
/// Calls body(last) for this thread's steps of the algorithm.
template <class Body>
__device__ void for_own_steps(const Drawn& of, int64_t block, Body body) {
  for_own(block, of.kept, [&](int64_t i) { body(static_cast<uint32_t>(of.numel - of.kept + i)); });
}

/// Writes the seed of a message that is encoded, and clears what the next kernels write to.
__global__ void __launch_bounds__(kThreads)
    start_kernel(const int64_t* recorded_step, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Drawn& of = place.entry;
  uint64_t seed;
  if (of.g != nullptr) {
    RandomKey key = of.key;
    key.step = step_now(recorded_step, key.step);
    seed = drawn_seed(key);
    if (place.block == 0 && threadIdx.x < 2)
      store_bytes(of.codes + 4 * threadIdx.x, 4, static_cast<uint32_t>(seed >> (32 * threadIdx.x)));
  } else {
    seed = seed_in(of.codes);
  }
  const RandomStream stream = randk_stream(seed);
  for_own_steps(of, place.block, [&](uint32_t last) { of.first_step[randk_draw(stream, last)] = ~0u; });
  for_own(place.block, of.words(), [&](int64_t word) { of.drawn[word] = 0; });
}

__global__ void __launch_bounds__(kThreads) first_step_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Drawn& of = place.entry;
  const RandomStream stream = randk_stream(seed_in(of.codes));
  for_own_steps(of, place.block, [&](uint32_t last) { atomicMin(&of.first_step[randk_draw(stream, last)], last); });
}

/// Whether an earlier step than `last` has taken the element that it draws.
__device__ bool draw_is_taken(const Drawn& of, const RandomStream& stream, uint32_t last, uint32_t draw) {
  const auto first = static_cast<uint32_t>(of.numel - of.kept);
  for (;;) {
    if (of.first_step[draw] < last) return true;
    if (draw < first || draw == last) return false;
    last = draw;
    draw = randk_draw(stream, last);
  }
}

__global__ void __launch_bounds__(kThreads) mark_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Drawn& of = place.entry;
  const RandomStream stream = randk_stream(seed_in(of.codes));
  for_own_steps(of, place.block, [&](uint32_t last) {
    const uint32_t draw = randk_draw(stream, last), taken = draw_is_taken(of, stream, last, draw) ? last : draw;
    atomicOr(&of.drawn[taken / kWarp], 1u << (taken % kWarp));
  });
}

/// The last block of a tensor replaces the count of each block by the sum of those before it.
__global__ void __launch_bounds__(kThreads) count_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Drawn& of = place.entry;
  const int64_t word = place.block * kThreads + threadIdx.x;
  const int count = fold_group<kThreads>(word < of.words() ? __popc(of.drawn[word]) : 0, Sum{});
  if (threadIdx.x == 0) of.counts[place.block] = static_cast<uint32_t>(count);
  if (is_last_block(static_cast<unsigned>(of.blocks()), static_cast<unsigned>(&of - table.entries)))
    sum_counts_before(of.counts, of.blocks());
}

/// Encodes or decodes the drawn elements. A warp handles the elements of one word of bits after another.
__global__ void __launch_bounds__(kThreads) value_kernel(const __grid_constant__ Table table) {
  __shared__ uint32_t words[kThreads];
  __shared__ int64_t before[kThreads];  // drawn elements of earlier words
  const auto place = table.place();
  const Drawn& of = place.entry;
  const int64_t first = place.block * kThreads, own = first + threadIdx.x;
  const uint32_t own_word = own < of.words() ? of.drawn[own] : 0;
  words[threadIdx.x] = own_word;
  before[threadIdx.x] = of.counts[place.block] + static_cast<int64_t>(sum_before(__popc(own_word)));
  __syncthreads();
  const int lane = lane_id();
  for (int w = static_cast<int>(threadIdx.x) / kWarp; w < kThreads; w += kWarps) {
    const uint32_t word = words[w];
    if ((word >> lane & 1u) == 0) continue;
    const int64_t i = (first + w) * kWarp + lane;
    uint8_t* const value = of.codes + 8 + 4 * (before[w] + votes_before(word));
    if (of.g != nullptr)
      store_bytes(value, 4, std::bit_cast<uint32_t>(static_cast<float>(of.g[i] * of.scale)));
    else
      of.sum[i] += std::bit_cast<float>(load_bytes(value, 4));
  }
}

void encode_or_decode(const char* operation, Device device, std::span<const Drawn> message) {
  for_each_table(
      message, [](const Drawn& of) { return of.step_blocks(); },
      [&](const Table& table) {
        launch(operation, device, table.grid(), start_kernel, recorded_step(), table);
        launch(operation, device, table.grid(), first_step_kernel, table);
        launch(operation, device, table.grid(), mark_kernel, table);
      });
  for_each_table(
      message, [](const Drawn& of) { return of.blocks(); },
      [&](const Table& table) {
        launch(operation, device, table.grid(), count_kernel, table);
        launch(operation, device, table.grid(), value_kernel, table);
      });
}

/// Memory for the draws of these entries.
Tensor take_scratch(Device device, std::span<Drawn> entries) {
  int64_t count = 0;
  for (const Drawn& of : entries) count += of.numel + of.words() + of.blocks();
  const Tensor scratch =
      Tensor::empty({count * static_cast<int64_t>(sizeof(uint32_t))}, {.dtype = DType::u8, .device = device});
  auto* next = reinterpret_cast<uint32_t*>(scratch.data<uint8_t>());
  for (Drawn& of : entries) {
    of.first_step = next;
    of.drawn = of.first_step + of.numel;
    of.counts = of.drawn + of.words();
    next = of.counts + of.blocks();
  }
  return scratch;
}

void randk_encode(std::span<const RandKGradient> message) {
  check_randk_encode(message);
  std::vector<Drawn> entries;
  for (const auto& [g, key, kept, codes] : message)
    if (kept != 0)
      entries.push_back({.g = g.data<float>(),
                         .codes = codes.data<uint8_t>(),
                         .numel = g.numel(),
                         .kept = kept,
                         .scale = randk_scale(g.numel(), kept),
                         .key = key});
  if (entries.empty()) return;
  const Device device = kernels::placement(message).device();
  const Tensor scratch = take_scratch(device, entries);
  encode_or_decode("randk_encode", device, entries);
}

/// One message after another, because each draws elements of its own.
void randk_decode_add(std::span<const RandKSum> message, const Tensor& messages) {
  check_randk_decode(message, messages);
  std::vector<Drawn> entries;
  for (const auto& [sum, kept, codes_at] : message)
    if (kept != 0)
      entries.push_back(
          {.sum = sum.data<float>(), .codes = messages.data<uint8_t>() + codes_at, .numel = sum.numel(), .kept = kept});
  if (entries.empty()) return;
  const Tensor scratch = take_scratch(messages.device(), entries);
  for (int64_t row = 0; row < messages.size(0); ++row) {
    encode_or_decode("randk_decode_add", messages.device(), entries);
    for (Drawn& of : entries) of.codes += messages.size(1);
  }
}

}  // namespace

void provide_randk() {
  kernels::randk_encode.provide(Target::cuda, randk_encode);
  kernels::randk_decode_add.provide(Target::cuda, randk_decode_add);
}

}  // namespace tern::cuda
