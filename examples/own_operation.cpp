#include <tern/kernels/elementwise.h>
#include <tern/tern.h>
#include <cstdio>

using namespace tern;

struct Swish {  // y = x · sigmoid(x)
  Saved x, gate;

  Tensor forward(const Tensor& input) {
    Tensor sigmoid = Tensor::empty_like(input), y = Tensor::empty_like(input);
    kernels::sigmoid(input, sigmoid);
    kernels::multiply(input, sigmoid, y);
    x = input;
    gate = sigmoid;
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

int main(int argc, char** argv) {
  wait_passively(argc, argv);
  const Variable x = Variable::leaf(Tensor::from<float>({3}, std::vector<float>{-1, 0, 2}));
  sum(swish(x)).backward();
  for (const float slope : x.gradient().span<float>()) std::printf("%.4f ", slope);
}
