#include <algorithm>

#include "tern/core/error.h"
#include "tern/kernels/randk.h"
#include "tern/kernels/topk.h"

namespace tern::kernels {
namespace {

void check_gradient(const char* operation, const Tensor& g, int64_t kept) {
  check(g.dtype() == DType::f32 && g.format() == MemoryFormat::row_major, operation, ": gradient is ", g.dtype(), ", ",
        g.format(), ", expected f32, row_major");
  const int64_t n = g.numel();
  check(n < int64_t{1} << 32, operation, ": gradient has ", n, " elements, expected below 2^32");
  check(kept <= n && kept >= std::min<int64_t>(n, 1), operation, ": keeps ", kept, " of ", n, " elements");
}

/// `codes` are `bytes` bytes beside the gradient.
void check_kept(const char* operation, const Tensor& g, int64_t kept, const Tensor& codes, int64_t bytes) {
  check_gradient(operation, g, kept);
  const Shape expected = {bytes};
  check(codes.dtype() == DType::u8 && codes.shape() == expected && codes.device() == g.device(), operation,
        ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 ", expected, " on ",
        g.device());
}

/// Bytes `begin` to `end` of each message can be a code, and `sum` is beside the messages.
void check_kept_add(const char* operation, const Tensor& sum, int64_t kept, const Tensor& messages, int64_t begin,
                    int64_t end) {
  check(messages.dtype() == DType::u8 && messages.rank() == 2, operation, ": messages are ", messages.dtype(), " ",
        messages.shape(), ", expected u8 [messages, bytes]");
  check_gradient(operation, sum, kept);
  check(sum.device() == messages.device() && begin >= 0 && end <= messages.size(1), operation, ": a code ends at byte ",
        end, " of ", messages.size(1), " on ", messages.device(), ", the sum is on ", sum.device());
}

}  // namespace

void check_topk_encode(std::span<const TopKGradient> message) {
  for (const auto& [g, kept, codes] : message) check_kept("topk_encode", g, kept, codes, topk_bytes(kept));
}
void check_randk_encode(std::span<const RandKGradient> message) {
  for (const auto& [g, key, kept, codes] : message) check_kept("randk_encode", g, kept, codes, randk_bytes(kept));
}

void check_topk_decode(std::span<const TopKSum> message, const Tensor& messages) {
  for (const auto& [sum, kept, codes_at] : message)
    check_kept_add("topk_decode_add", sum, kept, messages, codes_at, codes_at + topk_bytes(kept));
}
void check_randk_decode(std::span<const RandKSum> message, const Tensor& messages) {
  for (const auto& [sum, kept, codes_at] : message)
    check_kept_add("randk_decode_add", sum, kept, messages, codes_at, codes_at + randk_bytes(kept));
}

}  // namespace tern::kernels
