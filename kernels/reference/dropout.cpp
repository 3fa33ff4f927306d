#include "tern/kernels/dropout.h"

#include "tern/core/visit.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

void dropout(const Tensor& x, const Tensor& samples, const kernels::DropoutDraw& draw, Tensor& y) {
  kernels::check_alike("dropout", x, y);
  check(samples.shape() == Shape{x.size(0)}, "dropout: samples ", samples.shape(), " for input ", x.shape());
  const int64_t per_sample = x.shape().numel_from(1);
  const Position in_x(x);
  visit_floating(x.dtype(), "dropout", [&]<class T>(T) {
    const auto scale = static_cast<wider_t<T>>(1 / (1 - draw.probability));
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (int64_t n = 0; n < x.size(0); ++n) {
      const auto sample = static_cast<uint32_t>(samples.data<int64_t>()[n]);
      const RandomStream stream({draw.seed, Purpose::dropout, sample, draw.step, draw.layer});
      for (int64_t e = 0; e < per_sample; ++e) {
        const int64_t i = in_x(n * per_sample + e);
        const bool drops = stream.uniform(static_cast<uint64_t>(e)) < draw.probability;
        out[i] = static_cast<T>(drops ? 0 : scale * in[i]);
      }
    }
  });
}

}  // namespace

void provide_dropout() { kernels::dropout.provide(Target::reference, dropout); }

}  // namespace tern::reference
