#include "tern/kernels/libraries.h"

namespace tern::kernels {

std::vector<std::pair<std::string, std::string>> cpu_libraries() { return {}; }

bool has_bf16_products() { return false; }

}  // namespace tern::kernels
