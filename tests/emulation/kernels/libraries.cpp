#include "tern/kernels/libraries.h"

namespace tern {

std::vector<std::pair<std::string, std::string>> kernels::cuda_libraries() { return {{"cuda", "emulated"}}; }

}  // namespace tern
