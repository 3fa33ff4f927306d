#include "tern/kernels/cuda/map.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/short_float.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

template <ShortFloat kFormat>
struct Shorten {
  __device__ uint16_t operator()(float x) const { return short_bits(x, kFormat); }
};

/// Adds element i of each message, and the `Width` - 1 after it. Those of each next message are `step` codes further.
template <ShortFloat kFormat, int Width>
__device__ void widen(const uint16_t* codes, int64_t messages, int64_t step, int64_t i, float* sum) {
  auto totals = load_pack<float, Width>(sum + i);
#pragma unroll 4
  for (int64_t message = 0; message < messages; ++message) {
    const auto pack = load_pack<uint16_t, Width>(codes + message * step + i);
#pragma unroll
    for (int j = 0; j < Width; ++j) totals.values[j] += short_value(pack.values[j], kFormat);
  }
  store_pack(sum + i, totals);
}
template <ShortFloat kFormat, int Width>
__global__ void widen_kernel(const uint16_t* codes, int64_t messages, int64_t step, int64_t count, float* sum) {
  for (int64_t i = global_thread() * Width; i < count; i += global_threads() * Width)
    if (i + Width <= count)
      widen<kFormat, Width>(codes, messages, step, i, sum);
    else
      for (int64_t j = i; j < count; ++j) widen<kFormat, 1>(codes, messages, step, j, sum);
}

void shorten(const Tensor& x, ShortFloat format, Tensor& codes) {
  check_shorten(x, codes);
  visit_short(format, [&](auto constant) {
    map_walk("shorten", x.device(), straight<2>("shorten", x.numel()), Shorten<constant>{},
             reinterpret_cast<uint16_t*>(codes.data<uint8_t>()), static_cast<const float*>(x.data<float>()));
  });
}

void widen_add(const Tensor& messages, int64_t codes_at, ShortFloat format, Tensor& sum) {
  check_widen(messages, codes_at, sum);
  constexpr int kWidth = kPackBytes / sizeof(uint16_t);
  const auto* codes = reinterpret_cast<const uint16_t*>(messages.data<uint8_t>() + codes_at);
  const int64_t step = messages.size(1) / 2;
  const bool packs = takes_packs<kWidth>(codes) && step % kWidth == 0 && takes_packs<kWidth>(sum.data<float>());
  const int64_t threads = packs ? (sum.numel() + kWidth - 1) / kWidth : sum.numel();
  visit_short(format, [&](auto constant) {
    launch("widen_add", sum.device(), grid_over(threads),
           packs ? widen_kernel<constant, kWidth> : widen_kernel<constant, 1>, codes, messages.size(0), step,
           sum.numel(), sum.data<float>());
  });
}

}  // namespace

void provide_short_float() {
  kernels::shorten.provide(Target::cuda, shorten);
  kernels::widen_add.provide(Target::cuda, widen_add);
}

}  // namespace tern::cuda
