#include "tern/kernels/cpu/softmax.h"
#include "tern/kernels/cpu/softmax_rows.h"
#include "tern/kernels/softmax.h"

namespace tern::cpu {

void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities) {
  const int64_t rows = x.size(0), columns = x.size(1);
  const int64_t* label = labels.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) kernels::check_label(label[row], row, columns);
  const Tensor row_losses = Tensor::empty({rows});
  visit_fast(x.dtype(), "cross_entropy", [&]<class T>(T) {
    const T* in = x.data<T>();
    float *out = probabilities.data<float>(), *losses = row_losses.data<float>();
    const auto each = static_cast<float>(smoothing / static_cast<double>(columns)),
               hit = static_cast<float>(1 - smoothing);
    for_each_row(rows, columns, [=](int64_t row) {
      const T* from = in + row * columns;
      float* to = out + row * columns;
      const float shift = row_maximum(from, columns);
      const float sum = exponentials(from, shift, columns, to), scale = 1.0f / sum;
      float shifted_sum = 0;
#pragma omp simd reduction(+ : shifted_sum)
      for (int64_t j = 0; j < columns; ++j) {
        to[j] *= scale;
        shifted_sum += load(from + j) - shift;
      }
      losses[row] = std::log(sum) - hit * (load(from + label[row]) - shift);
      if (each > 0) losses[row] -= each * shifted_sum;  // an impossible class has logit -inf, and 0 · inf is NaN
    });
  });
  double total = 0;
  for (float row_loss : row_losses.span<float>()) total += row_loss;
  *loss.data<float>() = static_cast<float>(total / static_cast<double>(rows));
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx) {
  visit_fast(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    const int64_t rows = probabilities.size(0), columns = probabilities.size(1);
    const float* p = probabilities.data<float>();
    const int64_t* label = labels.data<int64_t>();
    T* out = dx.data<T>();
    const auto scale = static_cast<float>(dloss.item() / static_cast<double>(rows)),
               each = static_cast<float>(smoothing / static_cast<double>(columns)),
               hit = static_cast<float>(1 - smoothing);
    for_each_row(rows, columns, [=](int64_t row) {
      const float* from = p + row * columns;
      T* to = out + row * columns;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(to + j, scale * (from[j] - each));
      store(to + label[row], scale * (from[label[row]] - each - hit));
    });
  });
}

}  // namespace tern::cpu
