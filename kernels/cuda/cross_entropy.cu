#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/cuda/softmax.h"
#include "tern/kernels/cuda/total.h"
#include "tern/kernels/cuda/vector.h"

namespace tern::cuda {
namespace {

template <class T>
struct CrossEntropy {
  const T* x;
  const int64_t* labels;
  float each, hit;  ///< the target: `each` everywhere, `hit` more at the label
  float *probabilities, *row_losses;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = x + row.begin();
    float* out = probabilities + row.begin();
    const float shift = row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float sum = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    const float scale = 1 / sum,
                shifted_sum = each > 0 ? row.fold(0, Sum{}, [&](int64_t c) { return in[c] - shift; }) : 0;
    row.for_each([&](int64_t c) { out[c] = expf(float(in[c]) - shift) * scale; });
    if (!row.exists || threadIdx.x % Group != 0) return;
    const int64_t label = labels[row.number];
    float loss = NAN;
    if (label >= 0 && label < row.columns) loss = logf(sum) - hit * (float(in[label]) - shift);
    if (each > 0) loss -= each * shifted_sum;  // an impossible class has logit -inf, and 0 · inf is NaN
    row_losses[row.number] = loss;
  }
};

template <class T>
struct CrossEntropyBackward {
  const float* probabilities;
  const int64_t* labels;
  float each, hit, rows;
  const float* dloss;
  T* dx;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    if (!row.exists) return;
    const float scale = *dloss / rows;
    const int64_t label = labels[row.number];
    row.for_each([&](int64_t c) {
      const float target = each + (c == label ? hit : 0);
      dx[row.begin() + c] = static_cast<T>(scale * (probabilities[row.begin() + c] - target));
    });
  }
};

}  // namespace

void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities) {
  const int64_t rows = x.size(0), columns = x.size(1);
  check(labels.shape() == Shape{rows}, "cross_entropy: input ", x.shape(), " and labels ", labels.shape(),
        ", expected [N, C] and [N]");
  const Tensor row_losses = Tensor::empty({rows}, {.device = x.device()});
  visit_fast(x.dtype(), "cross_entropy", [&]<class T>(T) {
    for_each_row("cross_entropy", x.device(), rows, columns,
                 CrossEntropy<T>{.x = x.data<T>(),
                                 .labels = labels.data<int64_t>(),
                                 .each = static_cast<float>(smoothing / static_cast<double>(columns)),
                                 .hit = static_cast<float>(1 - smoothing),
                                 .probabilities = probabilities.data<float>(),
                                 .row_losses = row_losses.data<float>()});
  });
  total("cross_entropy", row_losses, 1 / static_cast<double>(rows), loss);
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx) {
  const int64_t rows = dx.size(0), columns = dx.size(1);
  visit_fast(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    for_each_row("cross_entropy_backward", dx.device(), rows, columns,
                 CrossEntropyBackward<T>{.probabilities = probabilities.data<float>(),
                                         .labels = labels.data<int64_t>(),
                                         .each = static_cast<float>(smoothing / static_cast<double>(columns)),
                                         .hit = static_cast<float>(1 - smoothing),
                                         .rows = static_cast<float>(rows),
                                         .dloss = dloss.data<float>(),
                                         .dx = dx.data<T>()});
  });
}

}  // namespace tern::cuda
