#include "tern/kernels/libraries.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include "tern/kernels/cpu/onednn.h"

namespace tern::kernels {
namespace {

/// "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." gives its second word.
std::string openblas_version() {
  const std::string text = openblas_get_config();
  const size_t begin = text.find(' ') + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cpu_libraries() {
  const dnnl_version_t* onednn = dnnl_version();
  return {{"onednn",
           std::to_string(onednn->major) + '.' + std::to_string(onednn->minor) + '.' + std::to_string(onednn->patch)},
          {"openblas", openblas_version()}};
}

bool has_bf16_products() { return cpu::onednn::has_bf16(); }

}  // namespace tern::kernels
