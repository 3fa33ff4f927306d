#include "tern/kernels/normalization.h"

#include "tern/core/error.h"

namespace tern::kernels {

int64_t batch_norm_count(const Shape& x) {
  check(x.rank() == 2 || x.rank() == 4, "batch_norm: input ", x, ", expected [N, C] or [N, C, H, W]");
  const int64_t count = x.rank() == 2 ? x[0] : x[0] * x[2] * x[3];
  check_input(count >= 2, "batch_norm: input of shape ", x, ", values per channel: ", count,
              ", training expects 2 or more: a larger batch has them");
  return count;
}

}  // namespace tern::kernels
