#include <tern/tern.h>
#include <cstdio>

using namespace tern;

struct Swish {  // y = x · sigmoid(x)
  Tensor x, gate;

  Tensor forward(const Tensor& input) {
    x = input;
    gate = Tensor::empty_like(x);
    kernels::sigmoid(x, gate);
    Tensor y = Tensor::empty_like(x);
    kernels::multiply(x, gate, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {  // dy · (g + x·g·(1 - g))
    Tensor dx = Tensor::empty_like(x);
    kernels::sigmoid_backward(gate, x, dx);
    kernels::accumulate(gate, dx);
    kernels::multiply(dy, dx, dx);
    return {dx};
  }
};
Variable swish(const Variable& x) { return apply(Swish{}, x); }

int main() {
  const Variable x = Variable::leaf(Tensor::from<float>({3}, std::vector<float>{-1, 0, 2}));
  sum(swish(x)).backward();
  for (const float slope : x.gradient().span<float>()) std::printf("%.4f ", slope);
}
