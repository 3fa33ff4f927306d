#include "tern/kernels/libraries.h"

namespace tern::kernels {

std::vector<std::pair<std::string, std::string>> cuda_libraries() { return {}; }

}  // namespace tern::kernels
