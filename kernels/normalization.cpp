#include "tern/kernels/normalization.h"

#include <algorithm>

#include "tern/core/visit.h"

namespace tern::kernels {

void store_passed(const Tensor& y, Tensor& passed) {
  check(passed.dtype() == DType::u8 && passed.shape() == Shape{passed_bytes(y.numel())}, "batch_norm: bits are ",
        passed.dtype(), " of shape ", passed.shape(), " for y of shape ", y.shape(), ", expected u8 [",
        passed_bytes(y.numel()), "]");
  uint8_t* bytes = passed.data<uint8_t>();
  std::fill_n(bytes, passed.numel(), uint8_t{0});
  visit_floating(y.dtype(), "batch_norm", [&]<class T>(T) {
    const T* values = y.data<T>();
    for (int64_t i = 0; i < y.numel(); ++i)
      if (!(values[i] <= 0)) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1u << i % 8);
  });
}

}  // namespace tern::kernels
