#include <utility>
#include <vector>

#include "tern/kernels/cuda/entropy.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

/// A warp codes a run of groups. A block has a run for each of its warps.
constexpr int kRunGroups = 32, kRun = kRunGroups * kWarp, kRunsPerBlock = kThreads / kWarp;
/// What a run adds to the code. Its elements are counted from 1, so that 0 is none.
struct Run {
  uint32_t dense, sparse;         // bits of the two forms, without the front and without the gap of element `first`
  uint32_t nonzero, first, last;  // the elements that are not zero
  uint32_t before;                // the last of these in the runs before
  uint64_t at;                    // the place of its first bit
};
/// The form of a tensor's code.
struct Form {
  uint64_t bits;
  uint32_t nonzero;
  bool is_dense;
};

/// A tensor, and memory for its code.
struct Packed {
  const uint8_t *codes, *prefix;
  int64_t numel, prefix_bytes, number;  // `number` is its index among the lengths
  Form* form = nullptr;
  Run* runs = nullptr;
  uint32_t* words = nullptr;  // of the code, the first bit highest

  constexpr int64_t run_count() const { return (numel + kRun - 1) / kRun; }
  constexpr int64_t blocks() const { return (run_count() + kRunsPerBlock - 1) / kRunsPerBlock; }
};
using Table = ItemTable<Packed>;

/// The number of this warp's run. It does not exist if it is beyond the tensor's.
__device__ int64_t own_run(int64_t block) { return block * kRunsPerBlock + threadIdx.x / kWarp; }

/// Groups whose codes are loaded at once.
constexpr int kAtOnce = 4;

/// Calls body(code, exists, element, before) for this lane's element of each group of a run. `before` is the last
/// element before it that is not zero, at first the given one. Returns the last of the run.
template <class Body>
__device__ uint32_t for_each_code(const Packed& of, int bits, int64_t run, uint32_t before, Body body) {
  const int64_t begin = run * kRunGroups, end = std::min(begin + kRunGroups, (of.numel + kWarp - 1) / kWarp);
  for (int64_t group = begin; group < end; group += kAtOnce) {
    uint32_t codes[kAtOnce];  // the last group first
    load_codes(of.codes, of.numel, bits, group, group + kAtOnce - 1, codes);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t code = codes[kAtOnce - 1 - k], ballot = __ballot_sync(~0u, code != 0);
      const int64_t first = (group + k) * kWarp;
      const auto number_of = [first](uint32_t votes) {
        return static_cast<uint32_t>(first) + static_cast<uint32_t>(std::bit_width(votes));
      };
      const uint32_t earlier = ballot & ((1u << lane_id()) - 1);
      body(code, first + lane_id() < of.numel, static_cast<uint32_t>(first + lane_id() + 1),
           earlier == 0 ? before : number_of(earlier));
      if (ballot != 0) before = number_of(ballot);
    }
  }
  return before;
}

__global__ void __launch_bounds__(kThreads) measure_kernel(int bits, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Packed& of = place.entry;
  const int64_t number = own_run(place.block);
  if (number >= of.run_count()) return;
  Run run{};
  run.last = for_each_code(of, bits, number, 0, [&](uint32_t code, bool exists, uint32_t element, uint32_t before) {
    if (exists) run.dense += static_cast<uint32_t>(elias_level(true, code).length);
    if (code == 0) return;
    run.sparse += static_cast<uint32_t>(elias_level(false, code).length);
    ++run.nonzero;
    if (before == 0)
      run.first = element;
    else
      run.sparse += static_cast<uint32_t>(omega_bits(element - before));
  });
  run.dense = fold_group<kWarp>(run.dense, Sum{});
  run.sparse = fold_group<kWarp>(run.sparse, Sum{});
  run.nonzero = fold_group<kWarp>(run.nonzero, Sum{});
  run.first = fold_group<kWarp>(run.first, Sum{});  // one lane has it, or none
  if (lane_id() == 0) of.runs[number] = run;
}

/// The largest value of the threads before this one, at least 0. All threads of the block must call it together.
__device__ uint64_t largest_before(uint64_t value) {
  __shared__ uint64_t values[kThreads];
  __syncthreads();
  values[threadIdx.x] = value;
  __syncthreads();
  uint64_t largest = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) largest = std::max(largest, values[i]);
  return largest;
}

/// One block chooses the form of a tensor, and gives each run its place.
__global__ void __launch_bounds__(kThreads) plan_kernel(int64_t* lengths, const __grid_constant__ Table table) {
  const Packed& of = table.place().entry;
  const OwnItems own(static_cast<int>(of.run_count()));
  uint64_t last = 0;
  for (int i = own.begin; i < own.end; ++i) last = std::max<uint64_t>(last, of.runs[i].last);
  const auto before = static_cast<uint32_t>(largest_before(last));
  const auto sparse_bits = [](const Run& run, uint32_t from) {
    return run.sparse + (run.nonzero == 0 ? 0u : static_cast<uint32_t>(omega_bits(run.first - from)));
  };
  uint64_t dense = 0, sparse = 0, nonzero = 0;
  uint32_t from = before;
  for (int i = own.begin; i < own.end; ++i) {
    const Run& run = of.runs[i];
    dense += run.dense;
    sparse += sparse_bits(run, from);
    nonzero += run.nonzero;
    if (run.nonzero != 0) from = run.last;
  }
  const uint64_t all_nonzero = fold_group<kThreads>(nonzero, Sum{});
  const auto front = [&](bool is_dense) { return static_cast<uint64_t>(elias_front(is_dense, all_nonzero).length); };
  const uint64_t all_dense = front(true) + fold_group<kThreads>(dense, Sum{}),
                 all_sparse = front(false) + fold_group<kThreads>(sparse, Sum{});
  const bool is_dense = all_dense < all_sparse;
  const uint64_t bits = is_dense ? all_dense : all_sparse;
  uint64_t at = front(is_dense) + sum_before(is_dense ? dense : sparse);
  from = before;
  for (int i = own.begin; i < own.end; ++i) {
    Run& run = of.runs[i];
    const uint64_t begin = i == 0 ? 0 : at;  // the first run also writes the front
    run.at = begin;
    run.before = from;
    of.words[begin / 32] = 0;  // several runs write this word
    at += is_dense ? run.dense : sparse_bits(run, from);
    if (run.nonzero != 0) from = run.last;
  }
  if (threadIdx.x != 0) return;
  of.words[bits / 32] = 0;
  *of.form = {bits, static_cast<uint32_t>(all_nonzero), is_dense};
  lengths[of.number] = of.prefix_bytes + static_cast<int64_t>((bits + 7) / 8);
}

/// The most bits of an element: of the largest level and its sign. An element with a gap has no more for each element
/// of the gap. The rest is for the front, a gap that begins before the run, and the start within a word.
constexpr int kElementBits = omega_bits(kMostLevels + 1) + 1;
constexpr int kRunWords = (kElementBits * kRun + 160) / 32;

/// The sum of the values of the lanes up to this one.
__device__ uint32_t sum_until(uint32_t value) {
  for (int step = 1; step < kWarp; step *= 2) {
    const uint32_t other = __shfl_sync(~0u, value, (lane_id() - step) & (kWarp - 1));
    if (lane_id() >= step) value += other;
  }
  return value;
}

__global__ void __launch_bounds__(kThreads) write_kernel(int bits, const __grid_constant__ Table table) {
  __shared__ uint32_t words_of[kRunsPerBlock][kRunWords];
  const auto place = table.place();
  const Packed& of = place.entry;
  const int64_t number = own_run(place.block);
  const bool exists = number < of.run_count();
  uint32_t* const words = words_of[threadIdx.x / kWarp];
  const Form form = *of.form;
  const uint64_t begin = exists ? of.runs[number].at : 0;
  const uint64_t end = !exists ? 0 : number + 1 < of.run_count() ? of.runs[number + 1].at : form.bits;
  uint64_t at = begin % 32;
  const auto count = static_cast<int>((at + (end - begin) + 31) / 32);
  for (int i = lane_id(); i < count; i += kWarp) words[i] = 0;
  __syncthreads();
  if (number == 0) {
    const BitCode front = elias_front(form.is_dense, form.nonzero);
    if (lane_id() == 0) put_bits(words, 0, front);
    at = static_cast<uint64_t>(front.length);
  }
  if (exists)
    for_each_code(of, bits, number, of.runs[number].before,
                  [&](uint32_t code, bool has_code, uint32_t element, uint32_t before) {
                    const BitCode gap = elias_gap(form.is_dense, code, element - before);
                    const BitCode level = has_code ? elias_level(form.is_dense, code) : BitCode{};
                    const uint32_t until = sum_until(static_cast<uint32_t>(gap.length + level.length));
                    const uint64_t level_at = at + until - static_cast<uint64_t>(level.length);
                    put_bits(words, level_at - static_cast<uint64_t>(gap.length), gap);
                    put_bits(words, level_at, level);
                    at += __shfl_sync(~0u, until, kWarp - 1);
                  });
  __syncthreads();
  for (int i = lane_id(); i < count; i += kWarp) {
    uint32_t& word = of.words[begin / 32 + static_cast<uint64_t>(i)];
    const bool is_shared = i == 0 || (i + 1 == count && end % 32 != 0);
    if (is_shared)
      atomicOr(&word, words[i]);
    else
      word = words[i];
  }
}

/// Puts the code of a tensor behind those of the tensors before it.
__global__ void __launch_bounds__(kThreads)
    place_kernel(const int64_t* lengths, uint8_t* bytes, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Packed& of = place.entry;
  int64_t before = 0;
  for (int64_t i = threadIdx.x; i < of.number; i += kThreads) before += lengths[i];
  uint8_t* to = bytes + fold_group<kThreads>(before, Sum{});
  copy_share(to, of.prefix, of.prefix_bytes, place.block, of.blocks());
  to += of.prefix_bytes;
  const int64_t count = lengths[of.number] - of.prefix_bytes;
  for (int64_t i = place.block * kThreads + threadIdx.x; i < count; i += of.blocks() * kThreads)
    to[i] = static_cast<uint8_t>(of.words[i / 4] >> (24 - 8 * (i % 4)));
}

void elias_pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  const char* const operation = "elias_pack";
  check_packing(operation, message, levels, bytes, lengths, most_elias_bytes);
  const Device device = bytes.device();
  const int bits = code_bits(levels);
  std::vector<Packed> entries;
  int64_t runs = 0, words = 0;
  const auto words_for = [&](const Packed& of) { return most_elias_bytes(of.numel, levels) / 4 + 1; };
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    if (numel == 0) continue;
    entries.push_back({codes.data<uint8_t>(), prefix.data<uint8_t>(), numel, prefix.numel(), static_cast<int64_t>(i)});
    runs += entries.back().run_count();
    words += words_for(entries.back());
  }
  if (entries.size() != message.size()) device_backend(device).fill_zero(lengths.raw_data(), lengths.bytes());
  if (entries.empty()) return;
  Scratch scratch(device);
  Form* form = scratch.take<Form>(std::ssize(entries));
  Run* run = scratch.take<Run>(runs);
  uint32_t* word = scratch.take<uint32_t>(words);
  for (Packed& of : entries) {
    of.form = form++;
    of.runs = std::exchange(run, run + of.run_count());
    of.words = std::exchange(word, word + words_for(of));
  }
  const std::span<const Packed> all = entries;
  const auto blocks = [](const Packed& of) { return of.blocks(); };
  const auto one = [](const Packed&) -> int64_t { return 1; };
  auto* const sizes = lengths.data<int64_t>();
  for_each_table(all, blocks,
                 [&](const Table& table) { launch(operation, device, table.grid(), measure_kernel, bits, table); });
  for_each_table(all, one,
                 [&](const Table& table) { launch(operation, device, table.grid(), plan_kernel, sizes, table); });
  for_each_table(all, blocks,
                 [&](const Table& table) { launch(operation, device, table.grid(), write_kernel, bits, table); });
  for_each_table(all, blocks, [&](const Table& table) {
    launch(operation, device, table.grid(), place_kernel, static_cast<const int64_t*>(sizes), bytes.data<uint8_t>(),
           table);
  });
}

}  // namespace

void provide_elias_pack() { kernels::elias_pack.provide(Target::cuda, elias_pack); }

}  // namespace tern::cuda
