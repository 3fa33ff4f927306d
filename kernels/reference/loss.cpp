#include "tern/kernels/reference/loss.h"

#include "tern/kernels/check.h"
#include "tern/kernels/reference/log_sum_exp.h"
#include "tern/kernels/softmax.h"

namespace tern::reference {
namespace {

/// The smoothed one-hot target of class c.
double target_of(int64_t c, int64_t label, int64_t classes, double smoothing) {
  return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

void check_labels(const Tensor& x, const Tensor& labels) {
  check(x.rank() == 2 && labels.shape() == Shape{x.size(0)}, "cross_entropy: input ", x.shape(), " and labels ",
        labels.shape(), ", expected [N, C] and [N]");
}

}  // namespace

// loss = -1/N Σ target · log softmax(x)
void cross_entropy(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss, Tensor& probabilities) {
  check_labels(x, labels);
  const int64_t rows = x.size(0), classes = x.size(1);
  visit_floating(x.dtype(), "cross_entropy", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide sum = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const T* in = x.data<T>() + n * classes;
      const int64_t label = labels.data<int64_t>()[n];
      kernels::check_label(label, n, classes);
      const Wide total = log_sum_exp(in, classes);
      for (int64_t c = 0; c < classes; ++c) {
        const auto target = static_cast<Wide>(target_of(c, label, classes, smoothing));
        if (target != 0) sum -= target * (in[c] - total);
        probabilities.data<Wide>()[n * classes + c] = std::exp(in[c] - total);
      }
    }
    loss.data<Wide>()[0] = sum / static_cast<Wide>(rows);
  });
}

void cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                            Tensor& dx) {
  check_labels(probabilities, labels);
  const int64_t rows = dx.size(0), classes = dx.size(1);
  visit_floating(dx.dtype(), "cross_entropy_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = dloss.data<Wide>()[0] / static_cast<Wide>(rows);
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t c = 0; c < classes; ++c) {
        const auto target = static_cast<Wide>(target_of(c, labels.data<int64_t>()[n], classes, smoothing));
        const int64_t i = n * classes + c;
        dx.data<T>()[i] = static_cast<T>(scale * (probabilities.data<Wide>()[i] - target));
      }
  });
}

void mse(const Tensor& x, const Tensor& target, Tensor& loss) {
  kernels::check_alike("mse", x, target);
  visit_floating(x.dtype(), "mse", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const Wide difference = x.data<T>()[i] - target.data<T>()[i];
      sum += difference * difference;
    }
    loss.data<Wide>()[0] = sum / static_cast<Wide>(x.numel());
  });
}

void mse_backward(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx) {
  kernels::check_alike("mse_backward", x, target);
  kernels::check_alike("mse_backward", x, dx);
  visit_floating(x.dtype(), "mse_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = dloss.data<Wide>()[0] * 2 / static_cast<Wide>(x.numel());
    for (int64_t i = 0; i < x.numel(); ++i)
      dx.data<T>()[i] = static_cast<T>(scale * (x.data<T>()[i] - target.data<T>()[i]));
  });
}

}  // namespace tern::reference
