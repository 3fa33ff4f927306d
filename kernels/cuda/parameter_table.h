#pragma once

#include <algorithm>
#include <span>

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/vector.h"
#include "tern/kernels/update.h"

namespace tern::cuda {

/// Parameters as a kernel's argument: one launch updates up to `kMost` of them, cut into chunks of `kChunk` elements, a
/// block each, so that small ones cost no launch of their own.
struct ParameterTable {
  static constexpr int kMost = 128, kChunk = 4096;

  struct Entry {
    float *w, *g, *first, *second;
    int64_t* steps;
    int64_t numel;
  };
  /// Part of a parameter that one block updates.
  struct Chunk {
    const Entry* entry;
    int64_t begin, end;
  };

  explicit ParameterTable(std::span<const kernels::ParameterUpdate> updates) {
    const auto elements = [](const Tensor& tensor) { return tensor.defined() ? tensor.data<float>() : nullptr; };
    for (const auto& update : updates) {
      entries[count] = {elements(update.w),
                        elements(update.g),
                        elements(update.first),
                        elements(update.second),
                        update.steps.defined() ? update.steps.data<int64_t>() : nullptr,
                        update.w.numel()};
      first_chunk[count + 1] = first_chunk[count] + static_cast<int32_t>((update.w.numel() + kChunk - 1) / kChunk);
      ++count;
    }
  }
  int32_t chunks() const { return first_chunk[count]; }

  __device__ Chunk chunk(int32_t number) const {
    int low = 0, high = count;  // first_chunk[low] <= number < first_chunk[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunk[middle] <= number ? low : high) = middle;
    }
    const int64_t begin = int64_t{number - first_chunk[low]} * kChunk;
    return {&entries[low], begin, std::min(begin + kChunk, entries[low].numel)};
  }

  int count = 0;
  int32_t first_chunk[kMost + 1] = {};
  Entry entries[kMost];
};

/// One array of a chunk in packs of four where it is aligned; null arrays give nothing.
struct Four {
  float values[4];
};
__device__ inline Four load_four(const float* x, int64_t at, int count) {
  Four four{};
  if (x == nullptr) return four;
  if (count == 4 && reinterpret_cast<uintptr_t>(x + at) % 16 == 0) {
    const auto pack = load_pack<float, 4>(x + at);
    for (int j = 0; j < 4; ++j) four.values[j] = pack.values[j];
  } else {
    for (int j = 0; j < 4; ++j)  // a known number of times, so that the values stay in registers
      if (j < count) four.values[j] = x[at + j];
  }
  return four;
}
__device__ inline void store_four(float* x, int64_t at, int count, const Four& four) {
  if (x == nullptr) return;
  if (count == 4 && reinterpret_cast<uintptr_t>(x + at) % 16 == 0)
    store_pack(x + at, Pack<float, 4>{four.values[0], four.values[1], four.values[2], four.values[3]});
  else
    for (int j = 0; j < 4; ++j)
      if (j < count) x[at + j] = four.values[j];
}

/// rule(w, g, first, second) for every element, by reference; rule = make(entry), once per block.
template <class Make>
__global__ void update_kernel(Make make, const __grid_constant__ ParameterTable table) {
  __shared__ decltype(make(table.entries[0])) rule;
  const auto chunk = table.chunk(static_cast<int32_t>(blockIdx.x));
  if (threadIdx.x == 0) rule = make(*chunk.entry);
  __syncthreads();
  const auto [w, g, first, second, steps, numel] = *chunk.entry;
  for (int64_t at = chunk.begin + 4 * threadIdx.x; at < chunk.end; at += 4 * kThreads) {
    const int count = static_cast<int>(std::min(chunk.end - at, int64_t{4}));
    Four weights = load_four(w, at, count), gradients = load_four(g, at, count), a = load_four(first, at, count),
         b = load_four(second, at, count);
    for (int j = 0; j < 4; ++j) rule(weights.values[j], gradients.values[j], a.values[j], b.values[j]);
    store_four(w, at, count, weights);
    store_four(first, at, count, a);
    store_four(second, at, count, b);
  }
}

/// body(table) for tables that hold all of `updates`.
template <class Body>
void for_each_table(std::span<const kernels::ParameterUpdate> updates, Body body) {
  while (!updates.empty()) {
    const auto some = updates.first(std::min<size_t>(updates.size(), ParameterTable::kMost));
    body(ParameterTable(some));
    updates = updates.subspan(some.size());
  }
}

template <class Make>
void update_all(const char* operation, std::span<const kernels::ParameterUpdate> updates, Make make) {
  for_each_table(updates, [&](const ParameterTable& table) {
    launch(operation, updates.front().w.device(), {.blocks = dim3(static_cast<unsigned>(table.chunks()))},
           update_kernel<Make>, make, table);
  });
}

}  // namespace tern::cuda
