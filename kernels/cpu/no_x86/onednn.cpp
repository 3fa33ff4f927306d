#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/libraries.h"

// On Arm, oneDNN as Debian builds it computes f32 products with plain loops and has no bf16 products. So tern does not
// use it there.

namespace tern {

std::vector<std::pair<std::string, std::string>> kernels::cpu_libraries() { return {}; }
bool kernels::has_bf16_products() { return false; }

namespace cpu {

bool onednn_has_bf16() { return false; }
bool onednn_forward(const Tensor&, const Tensor&, const Tensor&, const ConvGeometry&, Tensor&) { return false; }
bool onednn_backward_data(const Tensor&, const Tensor&, const ConvGeometry&, Tensor&) { return false; }
bool onednn_backward_weights(const Tensor&, const Tensor&, const ConvGeometry&, Tensor&, Tensor&) { return false; }

}  // namespace cpu
}  // namespace tern
