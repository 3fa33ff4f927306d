#include "tern/kernels/watch_numbers.h"

#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/recorded_step.h"

namespace tern::cuda {
namespace {

/// Bytes of f32 numbers, which need not be aligned.
struct Watched {
  const uint8_t* numbers;
  int64_t count;
  uint32_t* notice;
};

constexpr int64_t kPerThread = 16;

__global__ void watch_kernel(float most, const int64_t* recorded_step, uint32_t step,
                             const __grid_constant__ ItemTable<Watched> table) {
  const auto place = table.place();
  const Watched& of = place.entry;
  const int64_t first = place.block * kThreads * kPerThread + threadIdx.x;
  bool fine = true;
#pragma unroll 4
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t i = first + int64_t{k} * kThreads;
    if (i < of.count) fine = fine && fabsf(std::bit_cast<float>(load_bytes(of.numbers + 4 * i, 4))) <= most;
  }
  if (!fine && *of.notice == 0) *of.notice = step_now(recorded_step, step) + 1;
}

}  // namespace
}  // namespace tern::cuda

namespace tern::kernels {

void watch_numbers(std::span<const WatchedNumbers> watched, float most, uint32_t step) {
  std::vector<cuda::Watched> entries;
  for (const auto& [numbers, notice] : watched) {
    check((numbers.dtype() == DType::f32 || numbers.dtype() == DType::u8) &&
              numbers.device() == watched.front().numbers.device(),
          "watch_numbers: numbers are ", numbers.dtype(), " on ", numbers.device(), ", expected f32 or u8 on ",
          watched.front().numbers.device());
    if (numbers.numel() != 0)
      entries.push_back(
          {static_cast<const uint8_t*>(numbers.raw_data()), static_cast<int64_t>(numbers.bytes()) / 4, notice});
  }
  cuda::for_each_table(
      std::span<const cuda::Watched>(entries),
      [](const cuda::Watched& of) {
        constexpr int64_t kPerBlock = cuda::kThreads * cuda::kPerThread;
        return (of.count + kPerBlock - 1) / kPerBlock;
      },
      [&](const auto& table) {
        cuda::launch("watch_numbers", watched.front().numbers.device(), table.grid(), cuda::watch_kernel, most,
                     cuda::recorded_step(), step, table);
      });
}

}  // namespace tern::kernels
