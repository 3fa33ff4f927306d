#include "tern/autograd/softmax.h"

#include "tern/autograd/layout.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/loss.h"

namespace tern {
namespace {

/// A function of the last dimension whose gradient is one of its output.
template <const auto& kForward, const auto& kBackward>
struct RowOperation {
  Tensor y;

  Tensor forward(const Tensor& x) {
    check(x.rank() > 0, kForward.name(), ": shape [], expected a last dimension");
    const Tensor rows = in_format(x, MemoryFormat::row_major);
    y = Tensor::empty_like(rows);
    kForward(rows, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(y);
    kBackward(y, dy, dx);
    return {dx};
  }
};
using Softmax = RowOperation<kernels::softmax, kernels::softmax_backward>;
using LogSoftmax = RowOperation<kernels::log_softmax, kernels::log_softmax_backward>;

}  // namespace

Variable softmax(const Variable& x) { return apply(Softmax{}, x); }
Variable log_softmax(const Variable& x) { return apply(LogSoftmax{}, x); }

}  // namespace tern
