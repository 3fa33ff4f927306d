#include "tern/kernels/cuda/softmax.h"

#include "tern/kernels/check.h"
#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/cuda/vector.h"

namespace tern::cuda {
namespace {

/// Each row with its largest element as the shift, so that nothing overflows.
template <class T, bool Log>
struct Softmax {
  const T* x;
  T* y;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    T* out = y + row.begin();
    const float shift = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float total = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    const float scale = 1 / total, offset = shift + logf(total);
    row.for_each(
        [&](int64_t c) { out[c] = static_cast<T>(Log ? float(in[c]) - offset : expf(float(in[c]) - shift) * scale); });
  }
};

/// dx = y · (dy - Σ y·dy), and of the logarithm dx = dy - exp(y) · Σ dy.
template <class T, bool Log>
struct SoftmaxBackward {
  const T *y, *dy;
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T *out = y + row.begin(), *d_out = dy + row.begin();
    T* d_in = dx + row.begin();
    const float sum =
        row.fold(0, Sum{}, [&](int64_t c) { return Log ? float(d_out[c]) : float(out[c]) * float(d_out[c]); });
    row.for_each([&](int64_t c) {
      const float value = float(out[c]), d = float(d_out[c]);
      d_in[c] = static_cast<T>(Log ? d - expf(value) * sum : value * (d - sum));
    });
  }
};

template <bool Log>
void forward(const char* operation, const Tensor& x, Tensor& y) {
  kernels::check_alike(operation, x, y);
  if (x.numel() == 0) return;
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    for_each_row(operation, x.device(), x.numel() / x.size(-1), x.size(-1), Softmax<T, Log>{x.data<T>(), y.data<T>()});
  });
}

template <bool Log>
void backward(const char* operation, const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike(operation, y, dy);
  kernels::check_alike(operation, y, dx);
  if (y.numel() == 0) return;
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    for_each_row(operation, y.device(), y.numel() / y.size(-1), y.size(-1),
                 SoftmaxBackward<T, Log>{y.data<T>(), dy.data<T>(), dx.data<T>()});
  });
}

}  // namespace

void softmax(const Tensor& x, Tensor& y) { forward<false>("softmax", x, y); }
void log_softmax(const Tensor& x, Tensor& y) { forward<true>("log_softmax", x, y); }
void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) { backward<false>("softmax_backward", y, dy, dx); }
void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  backward<true>("log_softmax_backward", y, dy, dx);
}

}  // namespace tern::cuda
