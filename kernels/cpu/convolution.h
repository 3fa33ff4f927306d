#pragma once

#include "tern/kernels/convolution.h"

namespace tern::cpu {

using kernels::ConvGeometry;

/// How a convolution is computed. `automatic` chooses by shape and processor alone.
enum class ConvAlgorithm : uint8_t { automatic, direct, winograd, onednn };

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y);
void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx);
void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db);

// The same by one algorithm, for tests and measurements: an error where Winograd's does not apply, the automatic choice
// among tern's own where oneDNN refuses.
void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu, Tensor& y,
            ConvAlgorithm);
void conv2d_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx, ConvAlgorithm);
void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db,
                             ConvAlgorithm);

}  // namespace tern::cpu
