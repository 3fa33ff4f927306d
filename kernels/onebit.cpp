#include "tern/kernels/onebit.h"

namespace tern::kernels {
namespace {

void check_rows(const char* operation, const Tensor& g, int64_t width) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
  check(width > 0 && g.numel() % width == 0, operation, ": gradient has ", g.numel(),
        " elements, expected whole rows of ", width);
}

}  // namespace

void check_onebit_encode(std::span<const OneBitGradient> message) {
  for (const auto& [g, width, codes] : message) {
    check_rows("onebit_encode", g, width);
    const Shape expected = {onebit_bytes(g.numel(), width)};
    check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(),
          "onebit_encode: codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ",
          expected, " on ", g.device());
  }
}

void check_onebit_decode(std::span<const OneBitSum> message, const Tensor& messages) {
  check(messages.dtype() == DType::u8 && messages.rank() == 2, "onebit_decode_add: messages are ", messages.dtype(),
        " ", messages.shape(), ", expected u8 [messages, bytes]");
  for (const auto& [sum, width, codes_at] : message) {
    check_rows("onebit_decode_add", sum, width);
    const int64_t end = codes_at + onebit_bytes(sum.numel(), width);
    check(sum.device() == messages.device() && codes_at >= 0 && end <= messages.size(1),
          "onebit_decode_add: a code ends at byte ", end, " of ", messages.size(1), " on ", messages.device(),
          ", the sum is on ", sum.device());
  }
}

}  // namespace tern::kernels
