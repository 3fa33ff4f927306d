#pragma once

#include "tern/kernels/convolution.h"

// Convolutions by oneDNN, for what its instructions do best: bf16 products. Images f32 or bf16 in either format,
// weights and their gradient f32 OIHW. Each returns false, and writes nothing, where oneDNN has no such primitive.

namespace tern::cpu {

bool onednn_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry&, Tensor& y);
bool onednn_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry&, Tensor& dx);
/// db may be undefined.
bool onednn_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry&, Tensor& dw, Tensor& db);

}  // namespace tern::cpu
