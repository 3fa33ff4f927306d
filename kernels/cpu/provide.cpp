#include "tern/kernels/provide.h"
#include "tern/kernels/cpu/codec.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/cpu/dropout.h"
#include "tern/kernels/cpu/elementwise.h"
#include "tern/kernels/cpu/layout.h"
#include "tern/kernels/cpu/matmul.h"
#include "tern/kernels/cpu/normalization.h"
#include "tern/kernels/cpu/pooling.h"
#include "tern/kernels/cpu/reduction.h"
#include "tern/kernels/cpu/short_float.h"
#include "tern/kernels/cpu/softmax.h"
#include "tern/kernels/cpu/update.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/reduction.h"
#include "tern/kernels/softmax.h"

namespace tern {

void provide_cpu_kernels() {
  using enum Target;
  kernels::relu.provide(cpu, tern::cpu::relu);
  kernels::relu_backward.provide(cpu, tern::cpu::relu_backward);
  kernels::leaky_relu.provide(cpu, tern::cpu::leaky_relu);
  kernels::leaky_relu_backward.provide(cpu, tern::cpu::leaky_relu_backward);
  kernels::sigmoid.provide(cpu, tern::cpu::sigmoid);
  kernels::sigmoid_backward.provide(cpu, tern::cpu::sigmoid_backward);
  kernels::tanh.provide(cpu, tern::cpu::tanh);
  kernels::tanh_backward.provide(cpu, tern::cpu::tanh_backward);
  kernels::scale.provide(cpu, tern::cpu::scale);
  kernels::accumulate.provide(cpu, tern::cpu::accumulate);
  kernels::add.provide(cpu, tern::cpu::add);
  kernels::subtract.provide(cpu, tern::cpu::subtract);
  kernels::multiply.provide(cpu, tern::cpu::multiply);
  kernels::divide.provide(cpu, tern::cpu::divide);

  kernels::sum.provide(cpu, tern::cpu::sum);
  kernels::broadcast_to.provide(cpu, tern::cpu::broadcast_to);

  kernels::matmul.provide(cpu, tern::cpu::matmul);
  kernels::linear.provide(cpu, tern::cpu::linear);
  kernels::linear_backward_data.provide(cpu, tern::cpu::linear_backward_data);
  kernels::linear_backward_weights.provide(cpu, tern::cpu::linear_backward_weights);

  kernels::max_pool2d.provide(cpu, tern::cpu::max_pool2d);
  kernels::max_pool2d_backward.provide(cpu, tern::cpu::max_pool2d_backward);
  kernels::average_pool2d.provide(cpu, tern::cpu::average_pool2d);
  kernels::average_pool2d_backward.provide(cpu, tern::cpu::average_pool2d_backward);

  kernels::batch_norm_training.provide(cpu, tern::cpu::batch_norm_training);
  kernels::batch_norm_inference.provide(cpu, tern::cpu::batch_norm_inference);
  kernels::batch_norm_backward.provide(cpu, tern::cpu::batch_norm_backward);
  kernels::local_response_norm.provide(cpu, tern::cpu::local_response_norm);
  kernels::local_response_norm_backward.provide(cpu, tern::cpu::local_response_norm_backward);

  kernels::softmax.provide(cpu, tern::cpu::softmax);
  kernels::softmax_backward.provide(cpu, tern::cpu::softmax_backward);
  kernels::log_softmax.provide(cpu, tern::cpu::log_softmax);
  kernels::log_softmax_backward.provide(cpu, tern::cpu::log_softmax_backward);
  kernels::cross_entropy.provide(cpu, tern::cpu::cross_entropy);
  kernels::cross_entropy_backward.provide(cpu, tern::cpu::cross_entropy_backward);
  kernels::mse.provide(cpu, tern::cpu::mse);
  kernels::mse_backward.provide(cpu, tern::cpu::mse_backward);

  kernels::dropout.provide(cpu, tern::cpu::dropout);

  kernels::convert.provide(cpu, tern::cpu::convert);
  kernels::transpose.provide(cpu, tern::cpu::transpose);
  kernels::extract.provide(cpu, tern::cpu::extract);
  kernels::insert.provide(cpu, tern::cpu::insert);
  kernels::fill.provide(cpu, tern::cpu::fill);

  kernels::sgd_update.provide(cpu, tern::cpu::sgd_update);
  kernels::adam_update.provide(cpu, tern::cpu::adam_update);
  kernels::average_update.provide(cpu, tern::cpu::average_update);
  kernels::squared_norm.provide(cpu, tern::cpu::squared_norm);
  kernels::clip_scale.provide(cpu, tern::cpu::clip_scale);

  kernels::conv2d.provide(cpu, tern::cpu::conv2d);
  kernels::conv2d_backward_data.provide(cpu, tern::cpu::conv2d_backward_data);
  kernels::conv2d_backward_weights.provide(cpu, tern::cpu::conv2d_backward_weights);

  kernels::gradient_statistics.provide(cpu, tern::cpu::gradient_statistics);
  kernels::quantize.provide(cpu, tern::cpu::quantize);
  kernels::norm_quantize.provide(cpu, tern::cpu::norm_quantize);
  kernels::dequantize_add.provide(cpu, tern::cpu::dequantize_add);
  kernels::shorten.provide(cpu, tern::cpu::shorten);
  kernels::widen_add.provide(cpu, tern::cpu::widen_add);
}

}  // namespace tern
