#include "tern/kernels/check.h"

#include "tern/core/error.h"

namespace tern::kernels {

void check_alike(const char* operation, const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.dtype() == b.dtype() && a.format() == b.format(), operation, ": ", a.dtype(), " ",
        a.shape(), " (", a.format(), ") meets ", b.dtype(), " ", b.shape(), " (", b.format(),
        "), expected one shape, dtype and format");
}

}  // namespace tern::kernels
