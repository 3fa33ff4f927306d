#include "tern/kernels/provide.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/convolution.h"
#include "tern/kernels/dropout.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/pooling.h"
#include "tern/kernels/reduction.h"
#include "tern/kernels/reference/codec.h"
#include "tern/kernels/reference/convolution.h"
#include "tern/kernels/reference/dropout.h"
#include "tern/kernels/reference/elementwise.h"
#include "tern/kernels/reference/layout.h"
#include "tern/kernels/reference/loss.h"
#include "tern/kernels/reference/matmul.h"
#include "tern/kernels/reference/normalization.h"
#include "tern/kernels/reference/pooling.h"
#include "tern/kernels/reference/reduction.h"
#include "tern/kernels/reference/short_float.h"
#include "tern/kernels/reference/softmax.h"
#include "tern/kernels/reference/update.h"
#include "tern/kernels/softmax.h"
#include "tern/kernels/update.h"

namespace tern {

void provide_reference_kernels() {
  using enum Target;
  kernels::relu.provide(reference, tern::reference::relu);
  kernels::relu_backward.provide(reference, tern::reference::relu_backward);
  kernels::leaky_relu.provide(reference, tern::reference::leaky_relu);
  kernels::leaky_relu_backward.provide(reference, tern::reference::leaky_relu_backward);
  kernels::sigmoid.provide(reference, tern::reference::sigmoid);
  kernels::sigmoid_backward.provide(reference, tern::reference::sigmoid_backward);
  kernels::tanh.provide(reference, tern::reference::tanh);
  kernels::tanh_backward.provide(reference, tern::reference::tanh_backward);
  kernels::scale.provide(reference, tern::reference::scale);
  kernels::accumulate.provide(reference, tern::reference::accumulate);
  kernels::add.provide(reference, tern::reference::add);
  kernels::subtract.provide(reference, tern::reference::subtract);
  kernels::multiply.provide(reference, tern::reference::multiply);
  kernels::divide.provide(reference, tern::reference::divide);

  kernels::sum.provide(reference, tern::reference::sum);
  kernels::broadcast_to.provide(reference, tern::reference::broadcast_to);

  kernels::matmul.provide(reference, tern::reference::matmul);
  kernels::linear.provide(reference, tern::reference::linear);
  kernels::linear_backward_data.provide(reference, tern::reference::linear_backward_data);
  kernels::linear_backward_weights.provide(reference, tern::reference::linear_backward_weights);

  kernels::conv2d.provide(reference, tern::reference::conv2d);
  kernels::conv2d_backward_data.provide(reference, tern::reference::conv2d_backward_data);
  kernels::conv2d_backward_weights.provide(reference, tern::reference::conv2d_backward_weights);

  kernels::max_pool2d.provide(reference, tern::reference::max_pool2d);
  kernels::max_pool2d_backward.provide(reference, tern::reference::max_pool2d_backward);
  kernels::average_pool2d.provide(reference, tern::reference::average_pool2d);
  kernels::average_pool2d_backward.provide(reference, tern::reference::average_pool2d_backward);

  kernels::batch_norm_training.provide(reference, tern::reference::batch_norm_training);
  kernels::batch_norm_inference.provide(reference, tern::reference::batch_norm_inference);
  kernels::batch_norm_backward.provide(reference, tern::reference::batch_norm_backward);
  kernels::local_response_norm.provide(reference, tern::reference::local_response_norm);
  kernels::local_response_norm_backward.provide(reference, tern::reference::local_response_norm_backward);

  kernels::dropout.provide(reference, tern::reference::dropout);

  kernels::softmax.provide(reference, tern::reference::softmax);
  kernels::softmax_backward.provide(reference, tern::reference::softmax_backward);
  kernels::log_softmax.provide(reference, tern::reference::log_softmax);
  kernels::log_softmax_backward.provide(reference, tern::reference::log_softmax_backward);

  kernels::cross_entropy.provide(reference, tern::reference::cross_entropy);
  kernels::cross_entropy_backward.provide(reference, tern::reference::cross_entropy_backward);
  kernels::mse.provide(reference, tern::reference::mse);
  kernels::mse_backward.provide(reference, tern::reference::mse_backward);

  kernels::convert.provide(reference, tern::reference::convert);
  kernels::transpose.provide(reference, tern::reference::transpose);
  kernels::extract.provide(reference, tern::reference::extract);
  kernels::insert.provide(reference, tern::reference::insert);
  kernels::fill.provide(reference, tern::reference::fill);

  kernels::sgd_update.provide(reference, tern::reference::sgd_update);
  kernels::adam_update.provide(reference, tern::reference::adam_update);
  kernels::average_update.provide(reference, tern::reference::average_update);
  kernels::squared_norm.provide(reference, tern::reference::squared_norm);
  kernels::clip_scale.provide(reference, tern::reference::clip_scale);

  kernels::gradient_statistics.provide(reference, tern::reference::gradient_statistics);
  kernels::quantize.provide(reference, tern::reference::quantize);
  kernels::norm_quantize.provide(reference, tern::reference::norm_quantize);
  kernels::dequantize_add.provide(reference, tern::reference::dequantize_add);
  kernels::shorten.provide(reference, tern::reference::shorten);
  kernels::widen_add.provide(reference, tern::reference::widen_add);
}

}  // namespace tern
