#include "tern/kernels/matmul.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern::kernels {

Shape matmul_output_shape(const Shape& a, const Shape& b, const MatmulOptions& options) {
  const bool ranks_fit = a.rank() >= 2 && a.rank() <= 4 && (b.rank() == 2 || b.rank() == a.rank());
  const auto rows = [](const Shape& matrices, bool transposed) { return matrices[transposed ? -1 : -2]; };
  check(ranks_fit && rows(a, !options.transpose_a) == rows(b, options.transpose_b) &&
            (b.rank() == 2 || std::equal(a.begin(), a.end() - 2, b.begin())),
        "matmul: ", a, options.transpose_a ? "ᵀ" : "", " times ", b, options.transpose_b ? "ᵀ" : "",
        ", expected [..., m, k] times [..., k, n] or [k, n]");
  Shape y = a;
  y[-2] = rows(a, options.transpose_a);
  y[-1] = rows(b, !options.transpose_b);
  return y;
}

Shape linear_output_shape(const Shape& x, const Shape& w) {
  check(x.rank() == 2 && w.rank() == 2 && x[1] == w[1], "linear: input of shape ", x, ", weight of shape ", w,
        ", expected [N, in] and [out, in]");
  return {x[0], w[0]};
}

}  // namespace tern::kernels
