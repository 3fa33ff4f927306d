#include "tern/kernels/randk.h"

#include <algorithm>

namespace tern::kernels {
namespace {

void check_gradient(const char* operation, const Tensor& g, int64_t kept) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
  const int64_t n = g.numel();
  check(n < int64_t{1} << 32, operation, ": gradient has ", n, " elements, expected below 2^32");
  check(kept <= n && kept >= std::min<int64_t>(n, 1), operation, ": keeps ", kept, " of ", n, " elements");
}

}  // namespace

void check_randk_encode(std::span<const RandKGradient> message) {
  for (const RandKGradient& part : message) {
    check_gradient("randk_encode", part.g, part.kept);
    const Shape expected = {randk_bytes(part.kept)};
    check(part.codes.dtype() == DType::u8 && part.codes.shape() == expected && part.codes.device() == part.g.device(),
          "randk_encode: codes are ", part.codes.dtype(), " ", part.codes.shape(), " on ", part.codes.device(),
          ", expected u8 ", expected, " on ", part.g.device());
  }
}

void check_randk_decode(std::span<const RandKSum> message, const Tensor& messages) {
  check(messages.dtype() == DType::u8 && messages.rank() == 2, "randk_decode_add: messages are ", messages.dtype(), " ",
        messages.shape(), ", expected u8 [messages, bytes]");
  for (const auto& [sum, kept, codes_at] : message) {
    check_gradient("randk_decode_add", sum, kept);
    const int64_t end = codes_at + randk_bytes(kept);
    check(sum.device() == messages.device() && codes_at >= 0 && end <= messages.size(1),
          "randk_decode_add: a code ends at byte ", end, " of ", messages.size(1), " on ", messages.device(),
          ", the sum is on ", sum.device());
  }
}

}  // namespace tern::kernels
