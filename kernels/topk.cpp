#include "tern/kernels/topk.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/kernels/largest.h"

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

void check_topk_encode(std::span<const TopKGradient> message) {
  for (const TopKGradient& part : message) {
    check_gradient("topk_encode", part.g, part.kept);
    const Shape expected = {topk_bytes(part.kept)};
    check(part.codes.dtype() == DType::u8 && part.codes.shape() == expected && part.codes.device() == part.g.device(),
          "topk_encode: codes are ", part.codes.dtype(), " ", part.codes.shape(), " on ", part.codes.device(),
          ", expected u8 ", expected, " on ", part.g.device());
  }
}

void check_topk_decode(std::span<const TopKSum> message, const Tensor& messages) {
  check(messages.dtype() == DType::u8 && messages.rank() == 2, "topk_decode_add: messages are ", messages.dtype(), " ",
        messages.shape(), ", expected u8 [messages, bytes]");
  for (const auto& [sum, kept, codes_at] : message) {
    check_gradient("topk_decode_add", sum, kept);
    const int64_t end = codes_at + topk_bytes(kept);
    check(sum.device() == messages.device() && codes_at >= 0 && end <= messages.size(1),
          "topk_decode_add: a code ends at byte ", end, " of ", messages.size(1), " on ", messages.device(),
          ", the sum is on ", sum.device());
  }
}

void topk_add(const uint8_t* code, int64_t kept, float factor, std::span<float> sum) {
  if (kept == 0) return;
  std::vector<uint32_t> places(static_cast<size_t>(kept));
  std::vector<float> values(places.size());
  std::memcpy(places.data(), code, 4 * places.size());
  std::memcpy(values.data(), code + 4 * kept, 4 * values.size());
  for (size_t i = 0; i < places.size(); ++i) {
    check(places[i] < sum.size() && (i == 0 || places[i] > places[i - 1]), "topk_decode_add: place ", i,
          " of a message is ", places[i], ", expected ascending ones below ", sum.size());
    check(magnitude_bits(values[i]) < kInfinityBits, "topk_decode_add: value ", i, " of a message is not finite");
  }
  for (size_t i = 0; i < places.size(); ++i) sum[places[i]] += factor * values[i];
}

}  // namespace tern::kernels
