#include "tern/kernels/trits.h"

#include "tern/core/error.h"

namespace tern::kernels {

void check_trits(const char* operation, std::span<const PackedTensor> message, const Tensor& bytes) {
  int64_t expected = 0;
  for (const auto& [numel, codes, prefix] : message) {
    expected += prefix.numel() + packed_trit_bytes(numel);
    for (const Tensor& tensor : {codes, prefix})
      check(tensor.dtype() == DType::u8 && tensor.device() == bytes.device(), operation, ": a tensor has ",
            tensor.dtype(), " on ", tensor.device(), ", expected u8 on ", bytes.device());
    check(codes.numel() == code_bytes(numel, 2), operation, ": codes have ", codes.numel(), " bytes, expected ",
          code_bytes(numel, 2));
  }
  check(bytes.dtype() == DType::u8 && bytes.numel() == expected, operation, ": bytes are ", bytes.dtype(), " ",
        bytes.shape(), ", expected u8 [", expected, "]");
}

}  // namespace tern::kernels
