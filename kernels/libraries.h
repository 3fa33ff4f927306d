#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/core/device.h"

namespace tern::kernels {

/// The vendor libraries that the fast CPU kernels use, with their versions: {"onednn", "2.6.3"}, ...; empty if the
/// build has none.
std::vector<std::pair<std::string, std::string>> cpu_libraries();
/// The libraries of the CUDA kernels, with their versions: {"cuda", "13.0"}, {"cublaslt", "13.1.0"}, {"cudnn",
/// "9.19.0"}.
std::vector<std::pair<std::string, std::string>> cuda_libraries();

/// Whether the CPU kernels compute bf16 products with AVX512-BF16 or AMX instructions. Without them, bf16 is slower
/// than f32.
bool has_bf16_products();

/// Rules for products and convolutions on a device.
struct LibraryRules {
  bool tf32 = false;           ///< CUDA: tensor cores read f32 factors with 10 fraction bits; sums stay f32
  bool deterministic = false;  ///< CUDA: the same bits in every run; no engine is chosen by timing
  /// Convolutions add products as they are defined. Otherwise, Winograd's algorithm may be used. It is faster, and has
  /// 5 to 8 times the rounding error. In the gradient of the weights it has 20 to 50 times.
  bool direct_convolutions = false;
};

/// Sets the rules for all later work on `device`, for the whole process. Thread-safe.
void set_library_rules(Device device, const LibraryRules& rules);
LibraryRules library_rules(Device device);

}  // namespace tern::kernels
