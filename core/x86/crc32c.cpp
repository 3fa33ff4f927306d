#include "tern/core/x86/crc32c.h"

#include <vector>

namespace tern {

std::span<const detail::Crc32c> detail::crc32c_instructions() {
  static const auto all = [] {
    std::vector<Crc32c> found;
    const bool sse42 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    if (sse42 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
      found.push_back(crc32c_avx512);
    if (sse42) found.push_back(crc32c_sse42);
    return found;
  }();
  return all;
}

}  // namespace tern
