#include "tern/autograd/softmax.h"

#include "tern/autograd/layout.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/softmax.h"

namespace tern {
namespace {

struct Softmax {
  Tensor y;

  Tensor forward(const Tensor& x) {
    check(x.rank() > 0, "softmax: shape [], expected a last dimension");
    const Tensor rows = in_format(x, MemoryFormat::row_major);
    y = Tensor::empty_like(rows);
    kernels::softmax(rows, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(y);
    kernels::softmax_backward(y, dy, dx);
    return {dx};
  }
};

struct LogSoftmax {
  Tensor y;

  Tensor forward(const Tensor& x) {
    check(x.rank() > 0, "log_softmax: shape [], expected a last dimension");
    const Tensor rows = in_format(x, MemoryFormat::row_major);
    y = Tensor::empty_like(rows);
    kernels::log_softmax(rows, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(y);
    kernels::log_softmax_backward(y, dy, dx);
    return {dx};
  }
};

}  // namespace

Variable softmax(const Variable& x) { return apply(Softmax{}, x); }
Variable log_softmax(const Variable& x) { return apply(LogSoftmax{}, x); }

}  // namespace tern
