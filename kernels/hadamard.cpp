#include "tern/kernels/hadamard.h"

namespace tern::kernels {
namespace {

void check_gradient(const char* operation, const Tensor& g, int bits) {
  check(bits >= 1 && bits <= kMostHadamardBits, operation, ": bits is ", bits, ", expected 1 to ", kMostHadamardBits);
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
  check(g.numel() < int64_t{1} << 38, operation, ": gradient has ", g.numel(), " elements, expected below 2^38");
}

}  // namespace

void check_hadamard_encode(const Tensor& g, int bits, const Tensor& codes) {
  const char* const operation = "hadamard_encode";
  check_gradient(operation, g, bits);
  const Shape expected = {hadamard_bytes(g.numel(), bits)};
  check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(), operation,
        ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ", expected, " on ",
        g.device());
}

void check_hadamard_decode(const char* operation, const Tensor& messages, int64_t codes_at, int bits,
                           const Tensor& total) {
  check_gradient(operation, total, bits);
  const int64_t bytes = hadamard_bytes(total.numel(), bits);
  check(messages.dtype() == DType::u8 && messages.rank() == 2 && messages.device() == total.device() && codes_at >= 0 &&
            messages.size(1) >= codes_at + bytes,
        operation, ": messages are ", messages.dtype(), " ", messages.shape(), " on ", messages.device(),
        ", expected u8 [messages, bytes] on ", total.device(), " with ", bytes, " bytes from ", codes_at, " on");
}

}  // namespace tern::kernels
