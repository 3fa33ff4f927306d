#include "tern/kernels/short_float.h"

namespace tern::kernels {
namespace {

void check_floats(const char* operation, const Tensor& x) {
  check(x.dtype() == DType::f32 && x.format() == MemoryFormat::row_major, operation, ": elements are ", x.dtype(), ", ",
        x.format(), ", expected f32, row_major");
}

void check_even(const char* operation, const Tensor& codes, int64_t offset) {
  check((reinterpret_cast<uintptr_t>(codes.raw_data()) + static_cast<uintptr_t>(offset)) % 2 == 0, operation,
        ": codes begin at an odd address, expected an even one");
}

}  // namespace

void check_shorten(const Tensor& x, const Tensor& codes) {
  const char* const operation = "shorten";
  check_floats(operation, x);
  check(codes.dtype() == DType::u8 && codes.shape() == Shape{2 * x.numel()}, operation, ": codes are ", codes.dtype(),
        " ", codes.shape(), ", expected u8 [", 2 * x.numel(), "]");
  check_even(operation, codes, 0);
}

void check_widen(const Tensor& messages, int64_t codes_at, const Tensor& total) {
  const char* const operation = "widen_add";
  check_floats(operation, total);
  check(messages.dtype() == DType::u8 && messages.rank() == 2 && messages.size(1) >= codes_at + 2 * total.numel(),
        operation, ": messages are ", messages.dtype(), " ", messages.shape(), ", expected u8 [messages, bytes] with ",
        2 * total.numel(), " bytes from ", codes_at, " on");
  check_even(operation, messages, codes_at);
  check_even(operation, messages, messages.size(1));
}

}  // namespace tern::kernels
