#include "tern/kernels/cuda/bias.h"

#include "tern/kernels/cuda/channel_map.h"
#include "tern/kernels/cuda/elementwise.h"

namespace tern::cuda {
namespace {

struct AddBias {
  bool relu;
  __device__ float operator()(float y, float bias) const {
    const float sum = y + bias;
    return relu && sum < 0 ? 0 : sum;
  }
};

}  // namespace

void add_bias(const char* operation, const Tensor& bias, bool relu, Tensor& y) {
  if (!bias.defined()) {
    if (relu) cuda::relu(y, y);
    return;
  }
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    const ChannelMap map(operation, y.shape());
    map.run(AddBias{relu}, y, map.of<T>(y), map.of<T>(y), map.each(bias));
  });
}

}  // namespace tern::cuda
