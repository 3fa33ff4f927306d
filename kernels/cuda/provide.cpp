#include "tern/kernels/provide.h"
#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/convolution.h"
#include "tern/kernels/cuda/dropout.h"
#include "tern/kernels/cuda/elementwise.h"
#include "tern/kernels/cuda/layout.h"
#include "tern/kernels/cuda/matmul.h"
#include "tern/kernels/cuda/normalization.h"
#include "tern/kernels/cuda/pooling.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/cuda/short_float.h"
#include "tern/kernels/cuda/softmax.h"
#include "tern/kernels/cuda/update.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/reduction.h"
#include "tern/kernels/softmax.h"

namespace tern {

void provide_cuda_kernels() {
  using enum Target;
  kernels::relu.provide(cuda, tern::cuda::relu);
  kernels::relu_backward.provide(cuda, tern::cuda::relu_backward);
  kernels::leaky_relu.provide(cuda, tern::cuda::leaky_relu);
  kernels::leaky_relu_backward.provide(cuda, tern::cuda::leaky_relu_backward);
  kernels::sigmoid.provide(cuda, tern::cuda::sigmoid);
  kernels::sigmoid_backward.provide(cuda, tern::cuda::sigmoid_backward);
  kernels::tanh.provide(cuda, tern::cuda::tanh);
  kernels::tanh_backward.provide(cuda, tern::cuda::tanh_backward);
  kernels::scale.provide(cuda, tern::cuda::scale);
  kernels::accumulate.provide(cuda, tern::cuda::accumulate);
  kernels::add.provide(cuda, tern::cuda::add);
  kernels::subtract.provide(cuda, tern::cuda::subtract);
  kernels::multiply.provide(cuda, tern::cuda::multiply);
  kernels::divide.provide(cuda, tern::cuda::divide);

  kernels::sum.provide(cuda, tern::cuda::sum);
  kernels::broadcast_to.provide(cuda, tern::cuda::broadcast_to);

  kernels::matmul.provide(cuda, tern::cuda::matmul);
  kernels::linear.provide(cuda, tern::cuda::linear);
  kernels::linear_backward_data.provide(cuda, tern::cuda::linear_backward_data);
  kernels::linear_backward_weights.provide(cuda, tern::cuda::linear_backward_weights);

  kernels::max_pool2d.provide(cuda, tern::cuda::max_pool2d);
  kernels::max_pool2d_backward.provide(cuda, tern::cuda::max_pool2d_backward);
  kernels::average_pool2d.provide(cuda, tern::cuda::average_pool2d);
  kernels::average_pool2d_backward.provide(cuda, tern::cuda::average_pool2d_backward);

  kernels::batch_norm_training.provide(cuda, tern::cuda::batch_norm_training);
  kernels::batch_norm_inference.provide(cuda, tern::cuda::batch_norm_inference);
  kernels::batch_norm_backward.provide(cuda, tern::cuda::batch_norm_backward);
  kernels::local_response_norm.provide(cuda, tern::cuda::local_response_norm);
  kernels::local_response_norm_backward.provide(cuda, tern::cuda::local_response_norm_backward);

  kernels::softmax.provide(cuda, tern::cuda::softmax);
  kernels::softmax_backward.provide(cuda, tern::cuda::softmax_backward);
  kernels::log_softmax.provide(cuda, tern::cuda::log_softmax);
  kernels::log_softmax_backward.provide(cuda, tern::cuda::log_softmax_backward);
  kernels::cross_entropy.provide(cuda, tern::cuda::cross_entropy);
  kernels::cross_entropy_backward.provide(cuda, tern::cuda::cross_entropy_backward);
  kernels::mse.provide(cuda, tern::cuda::mse);
  kernels::mse_backward.provide(cuda, tern::cuda::mse_backward);

  kernels::dropout.provide(cuda, tern::cuda::dropout);

  kernels::convert.provide(cuda, tern::cuda::convert);
  kernels::transpose.provide(cuda, tern::cuda::transpose);
  kernels::extract.provide(cuda, tern::cuda::extract);
  kernels::insert.provide(cuda, tern::cuda::insert);
  kernels::fill.provide(cuda, tern::cuda::fill);

  kernels::sgd_update.provide(cuda, tern::cuda::sgd_update);
  kernels::adam_update.provide(cuda, tern::cuda::adam_update);
  kernels::average_update.provide(cuda, tern::cuda::average_update);
  kernels::squared_norm.provide(cuda, tern::cuda::squared_norm);
  kernels::clip_scale.provide(cuda, tern::cuda::clip_scale);

  kernels::gradient_statistics.provide(cuda, tern::cuda::gradient_statistics);
  kernels::quantize.provide(cuda, tern::cuda::quantize);
  kernels::norm_quantize.provide(cuda, tern::cuda::norm_quantize);
  kernels::dequantize_add.provide(cuda, tern::cuda::dequantize_add);
  kernels::shorten.provide(cuda, tern::cuda::shorten);
  kernels::widen_add.provide(cuda, tern::cuda::widen_add);

  kernels::conv2d.provide(cuda, tern::cuda::conv2d);
  kernels::conv2d_backward_data.provide(cuda, tern::cuda::conv2d_backward_data);
  kernels::conv2d_backward_weights.provide(cuda, tern::cuda::conv2d_backward_weights);
}

}  // namespace tern
