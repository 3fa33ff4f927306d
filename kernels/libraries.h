#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tern::kernels {

/// The vendor libraries that the fast CPU kernels run on, with their versions: {"onednn", "2.6.3"}, ...; empty where
/// the build has none.
std::vector<std::pair<std::string, std::string>> cpu_libraries();
/// The same of the CUDA kernels: {"cuda", "13.0"}, {"cublaslt", "13.1.0"}, {"cudnn", "9.19.0"}.
std::vector<std::pair<std::string, std::string>> cuda_libraries();

/// Whether the CPU kernels compute bf16 products by the processor's own instructions, AVX512-BF16 or AMX. Without them
/// bf16 is slower than f32.
bool has_bf16_products();

}  // namespace tern::kernels
