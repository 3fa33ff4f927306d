#include "tern/kernels/reference/elementwise.h"

#include "tern/core/visit.h"

namespace tern::reference {

void relu(const Tensor& x, Tensor& y) {
  visit_floating(x.dtype(), "relu", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] > T(0) ? in[i] : T(0);
  });
}

}  // namespace tern::reference
