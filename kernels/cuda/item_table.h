#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// Some tensors as the argument of a kernel. Each has its own blocks in one launch: small tensors need no launch of
/// their own.
template <class Entry>
struct ItemTable {
  static constexpr int kMost = 128;

  void add(const Entry& entry, int64_t blocks) {
    entries[count] = entry;
    first_block[count + 1] = first_block[count] + static_cast<int32_t>(blocks);
    ++count;
  }
  Grid grid() const { return {.blocks = dim3(static_cast<unsigned>(first_block[count]))}; }

  /// The entry of a block, and the number of the block within that entry.
  struct Place {
    const Entry& entry;
    int64_t block;
  };
  __device__ Place place() const {
    const auto number = static_cast<int32_t>(blockIdx.x);
    int low = 0, high = count;  // first_block[low] <= number < first_block[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_block[middle] <= number ? low : high) = middle;
    }
    return {entries[low], number - first_block[low]};
  }

  int count = 0;
  int32_t first_block[kMost + 1] = {};
  Entry entries[kMost];
};

/// Calls launch(table) for tables that together hold all `entries`, each with blocks_of(entry) blocks.
template <class Entry, class BlocksOf, class Launch>
void for_each_table(std::span<const Entry> entries, BlocksOf blocks_of, Launch launch) {
  while (!entries.empty()) {
    const auto some = entries.first(std::min<size_t>(entries.size(), ItemTable<Entry>::kMost));
    ItemTable<Entry> table;
    for (const Entry& entry : some) table.add(entry, blocks_of(entry));
    launch(table);
    entries = entries.subspan(some.size());
  }
}

}  // namespace tern::cuda
