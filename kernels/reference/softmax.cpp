#include "tern/kernels/reference/softmax.h"

#include "tern/kernels/check.h"
#include "tern/kernels/reference/log_sum_exp.h"

namespace tern::reference {
namespace {

/// Calls `visit(offset)` with the first element of every row along the last dimension.
template <class Visit>
void for_each_row(const Tensor& x, Visit visit) {
  for (int64_t offset = 0; offset < x.numel(); offset += x.size(-1)) visit(offset);
}

}  // namespace

void softmax(const Tensor& x, Tensor& y) {
  kernels::check_alike("softmax", x, y);
  visit_floating(x.dtype(), "softmax", [&]<class T>(T) {
    for_each_row(x, [&](int64_t row) {
      const T* in = x.data<T>() + row;
      T* out = y.data<T>() + row;
      const auto total = log_sum_exp(in, x.size(-1));
      for (int64_t c = 0; c < x.size(-1); ++c) out[c] = static_cast<T>(std::exp(in[c] - total));
    });
  });
}

void log_softmax(const Tensor& x, Tensor& y) {
  kernels::check_alike("log_softmax", x, y);
  visit_floating(x.dtype(), "log_softmax", [&]<class T>(T) {
    for_each_row(x, [&](int64_t row) {
      const T* in = x.data<T>() + row;
      T* out = y.data<T>() + row;
      const auto total = log_sum_exp(in, x.size(-1));
      for (int64_t c = 0; c < x.size(-1); ++c) out[c] = static_cast<T>(in[c] - total);
    });
  });
}

// dx = y · (dy - Σ y·dy)
void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike("softmax_backward", y, dy);
  kernels::check_alike("softmax_backward", y, dx);
  visit_floating(y.dtype(), "softmax_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for_each_row(y, [&](int64_t row) {
      const T *out = y.data<T>() + row, *d_out = dy.data<T>() + row;
      T* d_in = dx.data<T>() + row;
      Wide sum = 0;
      for (int64_t c = 0; c < y.size(-1); ++c) sum += Wide(out[c]) * Wide(d_out[c]);
      for (int64_t c = 0; c < y.size(-1); ++c) d_in[c] = static_cast<T>(out[c] * (d_out[c] - sum));
    });
  });
}

// dx = dy - exp(y) · Σ dy
void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::check_alike("log_softmax_backward", y, dy);
  kernels::check_alike("log_softmax_backward", y, dx);
  visit_floating(y.dtype(), "log_softmax_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for_each_row(y, [&](int64_t row) {
      const T *out = y.data<T>() + row, *d_out = dy.data<T>() + row;
      T* d_in = dx.data<T>() + row;
      Wide sum = 0;
      for (int64_t c = 0; c < y.size(-1); ++c) sum += d_out[c];
      for (int64_t c = 0; c < y.size(-1); ++c) d_in[c] = static_cast<T>(d_out[c] - std::exp(Wide(out[c])) * sum);
    });
  });
}

}  // namespace tern::reference
