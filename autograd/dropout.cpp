#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/dropout.h"

namespace tern {
namespace {

struct DropoutOperation {
  DropoutDraw draw;
  Saved samples;

  Tensor forward(const Tensor& x) const {
    Tensor y = Tensor::empty_like(x);
    kernels::dropout(x, samples, draw, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {forward(dy)}; }
};

}  // namespace

Variable dropout(const Variable& x, const Tensor& samples, const DropoutDraw& draw) {
  if (x.shape().rank() == 0) return reshape(dropout(reshape(x, {1}), samples, draw), Shape());
  check(draw.probability >= 0 && draw.probability <= 1, "dropout: probability ", draw.probability, ", expected [0, 1]");
  check(samples.defined() && samples.shape() == Shape{x.shape()[0]}, "dropout: samples of shape ", samples.shape(),
        " for input of shape ", x.shape(), ", expected one index per row");
  if (draw.probability == 0) return x;
  if (draw.probability == 1) return scale(x, 0);
  return apply(DropoutOperation{draw, samples}, x);
}

}  // namespace tern
