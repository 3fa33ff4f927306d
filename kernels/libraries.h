#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/core/device.h"

namespace tern::kernels {

/// The vendor libraries that the fast CPU kernels run on, with their versions: {"onednn", "2.6.3"}, ...; empty where
/// the build has none.
std::vector<std::pair<std::string, std::string>> cpu_libraries();
/// The same of the CUDA kernels: {"cuda", "13.0"}, {"cublaslt", "13.1.0"}, {"cudnn", "9.19.0"}.
std::vector<std::pair<std::string, std::string>> cuda_libraries();

/// Whether the CPU kernels compute bf16 products by the processor's own instructions, AVX512-BF16 or AMX. Without them
/// bf16 is slower than f32.
bool has_bf16_products();

/// What a CUDA device's libraries may do with products and convolutions.
struct LibraryRules {
  bool tf32 = false;           ///< f32 factors are read with 10 bits of fraction, on tensor cores; sums stay f32
  bool deterministic = false;  ///< the same bits from run to run, by engines that no timing chooses
};

/// For all that runs on `device` from now on; a setting of the whole process. Thread-safe.
void set_library_rules(Device device, const LibraryRules& rules);
LibraryRules library_rules(Device device);

}  // namespace tern::kernels
