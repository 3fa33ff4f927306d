#include "tern/kernels/matmul.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern::kernels {

Shape matmul_output_shape(const Shape& a, const Shape& b, const MatmulOptions& options) {
  check(a.rank() >= 2 && a.rank() <= 4 && (b.rank() == 2 || b.rank() == a.rank()), "matmul: shapes ", a, " and ", b,
        ", expected 2 to 4 dimensions, as many in the second or 2");
  check(b.rank() == 2 || std::equal(a.begin(), a.end() - 2, b.begin()), "matmul: leading dimensions of ", a, " and ", b,
        " differ");
  const int64_t m = a[options.transpose_a ? -1 : -2], k = a[options.transpose_a ? -2 : -1];
  const int64_t k_of_b = b[options.transpose_b ? -1 : -2], n = b[options.transpose_b ? -2 : -1];
  check(k == k_of_b, "matmul: ", a, options.transpose_a ? " transposed" : "", " has ", k, " columns, ", b,
        options.transpose_b ? " transposed" : "", " has ", k_of_b, " rows");
  Shape y = a;
  y[-2] = m;
  y[-1] = n;
  return y;
}

Shape linear_output_shape(const Shape& x, const Shape& w) {
  check(x.rank() == 2 && w.rank() == 2 && x[1] == w[1], "linear: input ", x, " and weight ", w,
        ", expected [n, in] and [out, in]");
  return {x[0], w[0]};
}

}  // namespace tern::kernels
