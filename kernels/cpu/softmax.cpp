#include "tern/kernels/cpu/softmax.h"

#include "tern/kernels/cpu/softmax_rows.h"

namespace tern::cpu {
namespace {

/// Σ e^(x - shift) over a row, in f32.
template <class T>
float exponential_sum(const T* x, float shift, int64_t columns) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) sum += exponential(load(x + j) - shift);
  return sum;
}

int64_t row_count(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(-1)); }

}  // namespace

void softmax(const Tensor& x, Tensor& y) {
  visit_fast(x.dtype(), "softmax", [&]<class T>(T) {
    const int64_t columns = x.size(-1);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for_each_row(row_count(x), columns, [=](int64_t row) {
      const T* from = in + row * columns;
      T* to = out + row * columns;
      const float shift = row_maximum(from, columns);
      const float scale = 1.0f / exponential_sum(from, shift, columns);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(to + j, exponential(load(from + j) - shift) * scale);
    });
  });
}

void softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  visit_fast(y.dtype(), "softmax_backward", [&]<class T>(T) {
    const int64_t columns = y.size(-1);
    const T *value = y.data<T>(), *in = dy.data<T>();
    T* out = dx.data<T>();
    for_each_row(row_count(y), columns, [=](int64_t row) {
      const T *p = value + row * columns, *d = in + row * columns;
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t j = 0; j < columns; ++j) dot += load(p + j) * load(d + j);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(out + row * columns + j, load(p + j) * (load(d + j) - dot));
    });
  });
}

void log_softmax(const Tensor& x, Tensor& y) {
  visit_fast(x.dtype(), "log_softmax", [&]<class T>(T) {
    const int64_t columns = x.size(-1);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for_each_row(row_count(x), columns, [=](int64_t row) {
      const T* from = in + row * columns;
      const float shift = row_maximum(from, columns);
      const float log_sum = std::log(exponential_sum(from, shift, columns));
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(out + row * columns + j, (load(from + j) - shift) - log_sum);
    });
  });
}

void log_softmax_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  visit_fast(y.dtype(), "log_softmax_backward", [&]<class T>(T) {
    const int64_t columns = y.size(-1);
    const T *value = y.data<T>(), *in = dy.data<T>();
    T* out = dx.data<T>();
    for_each_row(row_count(y), columns, [=](int64_t row) {
      const T *p = value + row * columns, *d = in + row * columns;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < columns; ++j) sum += load(d + j);
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j)
        store(out + row * columns + j, load(d + j) - exponential(load(p + j)) * sum);
    });
  });
}

}  // namespace tern::cpu
