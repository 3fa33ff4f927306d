#include "tern/kernels/libraries.h"
#include "tern/kernels/provide.h"

namespace tern::kernels {

std::vector<std::pair<std::string, std::string>> cpu_libraries() { return {}; }

bool has_bf16_products() { return false; }

}  // namespace tern::kernels

namespace tern {

void provide_cpu_kernels() {}

}  // namespace tern
