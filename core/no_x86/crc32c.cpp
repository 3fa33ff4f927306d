#include "tern/core/crc32c.h"

namespace tern {

std::span<const detail::Crc32c> detail::crc32c_instructions() { return {}; }

}  // namespace tern
