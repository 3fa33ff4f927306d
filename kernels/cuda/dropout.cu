#include "tern/kernels/dropout.h"

#include <cmath>

#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/recorded_step.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// One thread takes one block of four random words, for four logical neighbours. If channels are last, these are a
/// pixel apart. Neighbouring threads then take neighbouring channels, so that a warp still reads whole cache lines.
struct DropoutPlan {
  kernels::DropoutDraw draw;
  const int64_t* recorded_step;  ///< see step_now
  uint32_t threshold;            ///< drop if the upper 24 bits of the word are below it
  float scale;
  int64_t samples, numel, channels, pixels;  ///< of one sample; row-major: one channel
  Divider quads, by_channels;                ///< dividers by threads per sample and by channels
  bool straddles;                            ///< a block of words crosses channels: every element draws its own word
};

__device__ RandomStream stream_of(const DropoutPlan& plan, int64_t sample) {
  return RandomStream({plan.draw.seed, Purpose::dropout, static_cast<uint32_t>(sample),
                       step_now(plan.recorded_step, plan.draw.step), plan.draw.layer});
}

template <class T>
__device__ T dropped(const DropoutPlan& plan, T x, uint32_t word) {
  return static_cast<T>(word >> 8 >= plan.threshold ? plan.scale * float(x) : 0.0f);
}

template <class T>
__global__ void dropout_kernel(DropoutPlan plan, const int64_t* samples, const T* x, T* y) {
  const int64_t per_sample = plan.quads.divisor(), threads = plan.samples * per_sample;
  for (int64_t i = global_thread(); i < threads; i += global_threads()) {
    const int64_t n = plan.quads.quotient(static_cast<uint32_t>(i)), quad = i - n * per_sample;
    const RandomStream stream = stream_of(plan, samples[n]);
    const auto drop = [&](int64_t at, uint32_t word) { y[at] = dropped(plan, x[at], word); };
    const int64_t base = n * plan.numel;
    if (plan.straddles) {  // thread = position in memory
      const int64_t pixel = plan.by_channels.quotient(static_cast<uint32_t>(quad)), c = quad - pixel * plan.channels;
      drop(base + quad, stream.word(static_cast<uint64_t>(c * plan.pixels + pixel)));
    } else {
      const int64_t first = plan.by_channels.quotient(static_cast<uint32_t>(quad)), c = quad - first * plan.channels;
      const auto words = stream.block(static_cast<uint32_t>((c * plan.pixels + 4 * first) / 4));
      for (int64_t k = 0; k < 4 && 4 * first + k < plan.pixels; ++k)
        drop(base + (4 * first + k) * plan.channels + c, words[static_cast<size_t>(k)]);
    }
  }
}

/// A sample's logical neighbours are neighbours in memory. A thread has a pack of them. `packs` divides by the packs of
/// a sample.
template <class T, int Width>
__global__ void dropout_packs_kernel(DropoutPlan plan, Divider packs, const int64_t* samples, const T* x, T* y) {
  const int64_t threads = plan.samples * packs.divisor();
  for (int64_t i = global_thread(); i < threads; i += global_threads()) {
    const int64_t n = packs.quotient(static_cast<uint32_t>(i)), pack = i - n * packs.divisor();
    const RandomStream stream = stream_of(plan, samples[n]);
    auto values = load_pack<T, Width>(x + i * Width);
#pragma unroll
    for (int j = 0; j < Width; j += 4) {
      const auto words = stream.block(static_cast<uint32_t>((pack * Width + j) / 4));
#pragma unroll
      for (int k = 0; k < 4; ++k)
        values.values[j + k] = dropped(plan, values.values[j + k], words[static_cast<size_t>(k)]);
    }
    store_pack(y + i * Width, values);
  }
}

void dropout(const Tensor& x, const Tensor& samples, const kernels::DropoutDraw& draw, Tensor& y) {
  kernels::check_alike("dropout", x, y);
  check(samples.shape() == Shape{x.size(0)}, "dropout: samples ", samples.shape(), " for input ", x.shape());
  if (x.numel() == 0) return;
  DropoutPlan plan{.draw = draw,
                   .recorded_step = recorded_step(),
                   .threshold = static_cast<uint32_t>(std::ceil(draw.probability * 0x1p24)),
                   .scale = static_cast<float>(1 / (1 - draw.probability)),
                   .samples = x.size(0),
                   .numel = x.shape().numel_from(1),
                   .channels = x.format() == MemoryFormat::channels_last ? x.size(1) : 1,
                   .pixels = 0,
                   .quads = {},
                   .by_channels = {},
                   .straddles = false};
  plan.pixels = plan.numel / plan.channels;
  plan.straddles = plan.channels > 1 && plan.pixels % 4 != 0;
  const int64_t per_sample = plan.straddles ? plan.numel : plan.channels * ((plan.pixels + 3) / 4);
  check(plan.samples * per_sample < int64_t{1} << 31, "dropout: ", x.shape(), " takes ", plan.samples * per_sample,
        " draws of random words, on CUDA expected below 2^31");
  plan.quads = Divider(static_cast<uint32_t>(per_sample));
  plan.by_channels = Divider(static_cast<uint32_t>(plan.channels));
  visit_fast(x.dtype(), "dropout", [&]<class T>(T) {
    constexpr int kWidth = kPackBytes / sizeof(T);
    const auto* numbers = samples.data<int64_t>();
    const T* in = x.data<T>();
    T* out = y.data<T>();
    if (plan.channels == 1 && plan.numel % kWidth == 0 && takes_packs<kWidth>(in) && takes_packs<kWidth>(out))
      launch("dropout", x.device(), grid_over(x.numel() / kWidth), dropout_packs_kernel<T, kWidth>, plan,
             Divider(static_cast<uint32_t>(plan.numel / kWidth)), numbers, in, out);
    else
      launch("dropout", x.device(), grid_over(plan.samples * per_sample), dropout_kernel<T>, plan, numbers, in, out);
  });
}

}  // namespace

void provide_dropout() { kernels::dropout.provide(Target::cuda, dropout); }

}  // namespace tern::cuda
