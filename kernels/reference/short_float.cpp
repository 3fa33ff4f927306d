#include "tern/kernels/short_float.h"

#include <cstring>
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

void shorten(const Tensor& x, ShortFloat format, Tensor& codes) {
  check_shorten(x, codes);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const uint16_t bits = short_bits(x.data<float>()[i], format);
    std::memcpy(codes.data<uint8_t>() + 2 * i, &bits, sizeof bits);
  }
}

void widen_add(const Tensor& messages, int64_t codes_at, ShortFloat format, Tensor& sum) {
  check_widen(messages, codes_at, sum);
  for (int64_t message = 0; message < messages.size(0); ++message) {
    const uint8_t* const codes = messages.data<uint8_t>() + message * messages.size(1) + codes_at;
    for (int64_t i = 0; i < sum.numel(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, codes + 2 * i, sizeof bits);
      sum.data<float>()[i] += short_value(bits, format);
    }
  }
}

}  // namespace

void provide_short_float() {
  kernels::shorten.provide(Target::reference, shorten);
  kernels::widen_add.provide(Target::reference, widen_add);
}

}  // namespace tern::reference
