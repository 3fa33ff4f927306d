#include <oneapi/dnnl/dnnl.h>

#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/provide.h"

namespace tern {

void provide_cpu_kernels() {
  cpu::provide_attention();
  cpu::provide_codec();
  cpu::provide_convolution();
  cpu::provide_dropout();
  cpu::provide_elementwise();
  cpu::provide_embedding();
  cpu::provide_layer_norm();
  cpu::provide_layout();
  cpu::provide_loss();
  cpu::provide_matmul();
  cpu::provide_normalization();
  cpu::provide_pooling();
  cpu::provide_recurrent();
  cpu::provide_reduction();
  cpu::provide_short_float();
  cpu::provide_update();
}

}  // namespace tern

namespace tern::kernels {

std::vector<std::pair<std::string, std::string>> cpu_libraries() {
  const dnnl_version_t* onednn = dnnl_version();
  return {{"onednn",
           std::to_string(onednn->major) + '.' + std::to_string(onednn->minor) + '.' + std::to_string(onednn->patch)}};
}

bool has_bf16_products() { return cpu::onednn_has_bf16(); }

}  // namespace tern::kernels
