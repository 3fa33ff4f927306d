#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/short_float.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

template <ShortFloat kFormat>
__global__ void shorten_kernel(const float* x, int64_t count, uint16_t* codes) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) codes[i] = short_bits(x[i], kFormat);
}

/// `codes` points to the codes of the first message. Those of each next message are `step` codes further.
template <ShortFloat kFormat>
__global__ void widen_kernel(const uint16_t* codes, int64_t messages, int64_t step, int64_t count, float* sum) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    float total = sum[i];
    for (int64_t message = 0; message < messages; ++message) total += short_value(codes[message * step + i], kFormat);
    sum[i] = total;
  }
}

void shorten(const Tensor& x, ShortFloat format, Tensor& codes) {
  check_shorten(x, codes);
  visit_short(format, [&](auto constant) {
    launch("shorten", x.device(), grid_over(x.numel()), shorten_kernel<constant>,
           static_cast<const float*>(x.data<float>()), x.numel(), reinterpret_cast<uint16_t*>(codes.data<uint8_t>()));
  });
}

void widen_add(const Tensor& messages, int64_t codes_at, ShortFloat format, Tensor& sum) {
  check_widen(messages, codes_at, sum);
  visit_short(format, [&](auto constant) {
    launch("widen_add", sum.device(), grid_over(sum.numel()), widen_kernel<constant>,
           reinterpret_cast<const uint16_t*>(messages.data<uint8_t>() + codes_at), messages.size(0),
           messages.size(1) / 2, sum.numel(), sum.data<float>());
  });
}

}  // namespace

void provide_short_float() {
  kernels::shorten.provide(Target::cuda, shorten);
  kernels::widen_add.provide(Target::cuda, widen_add);
}

}  // namespace tern::cuda
