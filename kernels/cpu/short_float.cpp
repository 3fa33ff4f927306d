#include "tern/kernels/short_float.h"

#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

void shorten(const Tensor& x, ShortFloat format, Tensor& codes) {
  check_shorten(x, codes);
  const float* const in = x.data<float>();
  auto* const out = reinterpret_cast<uint16_t*>(codes.data<uint8_t>());
  visit_short(format, [&](auto constant) {
    parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) out[i] = short_bits(in[i], constant);
    });
  });
}

void widen_add(const Tensor& messages, int64_t codes_at, ShortFloat format, Tensor& sum) {
  check_widen(messages, codes_at, sum);
  float* const total = sum.data<float>();
  const int64_t count = messages.size(0), bytes = messages.size(1);
  const uint8_t* const codes = messages.data<uint8_t>() + codes_at;
  visit_short(format, [&](auto constant) {
    parallel_vectorized(sum.numel(), kGrain, [=](int64_t first, int64_t last) {
      for (int64_t message = 0; message < count; ++message) {
        const auto* const in = reinterpret_cast<const uint16_t*>(codes + message * bytes);
#pragma omp simd
        for (int64_t i = first; i < last; ++i) total[i] += short_value(in[i], constant);
      }
    });
  });
}

}  // namespace

void provide_short_float() {
  kernels::shorten.provide(Target::cpu, shorten);
  kernels::widen_add.provide(Target::cpu, widen_add);
}

}  // namespace tern::cpu
