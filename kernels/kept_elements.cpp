#include "tern/kernels/kept_elements.h"

#include <algorithm>

#include "tern/core/error.h"

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

void check_kept(const char* operation, const Tensor& g, int64_t kept, const Tensor& codes, int64_t bytes) {
  check_gradient(operation, g, kept);
  const Shape expected = {bytes};
  check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(), operation,
        ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ", expected, " on ",
        g.device());
}

void check_kept_add(const char* operation, const Tensor& sum, int64_t kept, const Tensor& messages, int64_t begin,
                    int64_t end) {
  check(messages.dtype() == DType::u8 && messages.rank() == 2, operation, ": messages are ", messages.dtype(), " ",
        messages.shape(), ", expected u8 [messages, bytes]");
  check_gradient(operation, sum, kept);
  check(sum.device() == messages.device() && begin >= 0 && end <= messages.size(1), operation, ": a code ends at byte ",
        end, " of ", messages.size(1), " on ", messages.device(), ", the sum is on ", sum.device());
}

}  // namespace tern::kernels
