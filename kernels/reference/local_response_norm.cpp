#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/check.h"
#include "tern/kernels/reference/indexing.h"
#include "tern/kernels/reference/normalization.h"

namespace tern::reference {
namespace {

/// Calls `visit(n, c, h, w)` for every element of x.
template <class Visit>
void for_each_element(const Tensor& x, Visit visit) {
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t c = 0; c < x.size(1); ++c)
      for (int64_t h = 0; h < x.size(2); ++h)
        for (int64_t w = 0; w < x.size(3); ++w) visit(n, c, h, w);
}

}  // namespace

// As in PyTorch, an even size reaches one channel further down than up.
void local_response_norm(const Tensor& x, const kernels::LocalResponseNormOptions& options, Tensor& y,
                         Tensor& denominator) {
  kernels::check_alike("local_response_norm", x, y);
  kernels::check_alike("local_response_norm", x, denominator);
  const int64_t channels = x.size(1), below = options.size / 2, above = options.size - 1 - below;
  visit_floating(x.dtype(), "local_response_norm", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> in(x), out(y), under(denominator);
    for_each_element(x, [&](auto n, auto c, auto h, auto w) {
      Wide squares = 0;
      for (int64_t q = std::max<int64_t>(c - below, 0); q <= std::min(c + above, channels - 1); ++q)
        squares += Wide(in(n, q, h, w)) * Wide(in(n, q, h, w));
      const Wide base =
          static_cast<Wide>(options.k) + static_cast<Wide>(options.alpha / static_cast<double>(options.size)) * squares;
      under(n, c, h, w) = static_cast<T>(base);
      out(n, c, h, w) = static_cast<T>(in(n, c, h, w) * std::pow(base, static_cast<Wide>(-options.beta)));
    });
  });
}

// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1) over the q
// whose window holds c.
void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const kernels::LocalResponseNormOptions& options, Tensor& dx) {
  kernels::check_alike("local_response_norm_backward", dy, x);
  kernels::check_alike("local_response_norm_backward", dy, denominator);
  kernels::check_alike("local_response_norm_backward", dy, dx);
  const int64_t channels = x.size(1), below = options.size / 2, above = options.size - 1 - below;
  visit_floating(dy.dtype(), "local_response_norm_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy), in(x), under(denominator), d_in(dx);
    const auto beta = static_cast<Wide>(options.beta);
    const auto factor = static_cast<Wide>(2 * options.alpha * options.beta / static_cast<double>(options.size));
    for_each_element(x, [&](auto n, auto c, auto h, auto w) {
      Wide sum = 0;
      for (int64_t q = std::max<int64_t>(c - above, 0); q <= std::min(c + below, channels - 1); ++q)
        sum += Wide(d_out(n, q, h, w)) * Wide(in(n, q, h, w)) * std::pow(Wide(under(n, q, h, w)), -beta - 1);
      d_in(n, c, h, w) =
          static_cast<T>(d_out(n, c, h, w) * std::pow(Wide(under(n, c, h, w)), -beta) - factor * in(n, c, h, w) * sum);
    });
  });
}

}  // namespace tern::reference
