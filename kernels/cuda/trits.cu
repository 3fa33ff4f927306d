#include "tern/kernels/trits.h"

#include <vector>

#include "tern/kernels/cuda/entropy.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int64_t kGroupsPerBlock = 512, kPrefixPerBlock = 8 * kThreads;

/// A tensor's bit planes, and its packed numbers with their prefix. Its first blocks copy the prefix, which can be long
/// for a short tensor: the first one of a message has the units of all.
struct Trits {
  uint8_t *codes, *prefix, *bytes;
  int64_t numel, prefix_bytes;

  constexpr int64_t prefix_blocks() const { return (prefix_bytes + kPrefixPerBlock - 1) / kPrefixPerBlock; }
  constexpr int64_t code_blocks() const { return (numel + kGroupsPerBlock * kWarp - 1) / (kGroupsPerBlock * kWarp); }
};
using Table = ItemTable<Trits>;

/// Each thread makes some bytes.
__global__ void __launch_bounds__(kThreads) pack_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Trits& of = place.entry;
  const int64_t copiers = of.prefix_blocks(), block = place.block - copiers, blocks = of.code_blocks();
  if (block < 0) return copy_share(of.bytes, of.prefix, of.prefix_bytes, place.block, copiers);
  for (int64_t at = block * kThreads + threadIdx.x; at < packed_trit_bytes(of.numel); at += blocks * kThreads)
    of.bytes[of.prefix_bytes + at] = trit_byte(of.codes, of.numel, at);
}

/// A warp makes the planes of a group.
__global__ void __launch_bounds__(kThreads) unpack_kernel(const __grid_constant__ Table table) {
  const auto place = table.place();
  const Trits& of = place.entry;
  const int64_t copiers = of.prefix_blocks(), block = place.block - copiers;
  if (block < 0) return copy_share(of.prefix, of.bytes, of.prefix_bytes, place.block, copiers);
  const uint8_t* const packed = of.bytes + of.prefix_bytes;
  const int64_t end = std::min((block + 1) * kGroupsPerBlock, (of.numel + kWarp - 1) / kWarp);
  for (int64_t group = block * kGroupsPerBlock + threadIdx.x / kWarp; group < end; group += kThreads / kWarp) {
    const int64_t e = group * kWarp + lane_id();
    store_codes(of.codes, of.numel, 2, group,
                e < of.numel ? trit_code(packed[e / kNumbersPerByte], e % kNumbersPerByte) : 0);
  }
}

void run(const char* operation, std::span<const PackedTensor> message, const Tensor& bytes, void (*kernel)(Table)) {
  check_trits(operation, message, bytes);
  std::vector<Trits> entries;
  uint8_t* next = bytes.data<uint8_t>();
  for (const auto& [numel, codes, prefix] : message) {
    if (numel == 0) continue;
    entries.push_back({codes.data<uint8_t>(), prefix.data<uint8_t>(), next, numel, prefix.numel()});
    next += prefix.numel() + packed_trit_bytes(numel);
  }
  for_each_table(
      std::span<const Trits>(entries), [](const Trits& of) { return of.prefix_blocks() + of.code_blocks(); },
      [&](const Table& table) { launch(operation, bytes.device(), table.grid(), kernel, table); });
}

void trit_pack(std::span<const PackedTensor> message, Tensor& bytes) { run("trit_pack", message, bytes, pack_kernel); }
void trit_unpack(std::span<const PackedTensor> message, const Tensor& bytes) {
  run("trit_unpack", message, bytes, unpack_kernel);
}

}  // namespace

void provide_trits() {
  kernels::trit_pack.provide(Target::cuda, trit_pack);
  kernels::trit_unpack.provide(Target::cuda, trit_unpack);
}

}  // namespace tern::cuda
