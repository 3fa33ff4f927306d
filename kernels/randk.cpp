#include "tern/kernels/randk.h"

#include "tern/kernels/kept_elements.h"

namespace tern::kernels {
void check_randk_encode(std::span<const RandKGradient> message) {
  for (const RandKGradient& part : message)
    check_kept("randk_encode", part.g, part.kept, part.codes, randk_bytes(part.kept));
}

void check_randk_decode(std::span<const RandKSum> message, const Tensor& messages) {
  for (const auto& [sum, kept, codes_at] : message)
    check_kept_add("randk_decode_add", sum, kept, messages, codes_at, codes_at + randk_bytes(kept));
}

}  // namespace tern::kernels
