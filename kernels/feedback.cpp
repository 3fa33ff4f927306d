#include "tern/kernels/feedback.h"

namespace tern::kernels {
namespace {

void check_alike_all(const char* operation, const Tensor& like, std::initializer_list<const Tensor*> others) {
  check(like.dtype() == DType::f32 && like.format() == MemoryFormat::row_major, operation, ": a tensor is ",
        like.dtype(), ", ", like.format(), ", expected f32, row_major");
  for (const Tensor* other : others) {
    check_alike(operation, like, *other);
    check(other->device() == like.device(), operation, ": one tensor is on ", like.device(), ", another on ",
          other->device());
  }
}

}  // namespace

void check_add_residual(std::span<const CorrectedGradient> message) {
  for (const auto& [gradient, minus, residual, whole] : message)
    check_alike_all("add_residual", gradient, {minus.defined() ? &minus : &gradient, &residual, &whole});
}

void check_nearest_factors(std::span<const DecodedPair> message, const Tensor& factors) {
  const char* const operation = "nearest_factors";
  for (const auto& [whole, decoded] : message) {
    check_alike_all(operation, whole, {&decoded});
    check(whole.numel() != 0, operation, ": a tensor is empty");
    check(factors.device() == whole.device(), operation, ": factors are on ", factors.device(), ", a tensor is on ",
          whole.device());
  }
  check(factors.dtype() == DType::f32 && factors.shape() == Shape{std::ssize(message)}, operation, ": factors are ",
        factors.dtype(), " ", factors.shape(), ", expected f32 [", message.size(), "]");
}

void check_add_scaled(std::span<const ScaledAddition> message, const Tensor& factors) {
  for (const auto& [x, sum] : message) {
    check_alike_all("add_scaled", x, {&sum});
    if (factors.defined())
      check(factors.device() == x.device(), "add_scaled: factors are on ", factors.device(), ", a tensor is on ",
            x.device());
  }
  check(!factors.defined() || (factors.dtype() == DType::u8 && factors.numel() == 4 * std::ssize(message)),
        "add_scaled: found ", factors.defined() ? factors.numel() : 0, " bytes of factors, expected ",
        4 * message.size());
}

void check_copy_bytes(std::span<const CopiedBytes> copies) {
  for (const auto& [from, to] : copies)
    check(from.dtype() == DType::u8 && to.dtype() == DType::u8 && from.shape() == to.shape() &&
              from.device() == to.device(),
          "copy_bytes: ", from.dtype(), " ", from.shape(), " on ", from.device(), " to ", to.dtype(), " ", to.shape(),
          " on ", to.device(), ", expected u8 of one shape on one device");
}

}  // namespace tern::kernels
