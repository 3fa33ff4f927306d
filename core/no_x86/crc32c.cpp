#include "tern/core/crc32c.h"

namespace tern {

detail::Crc32c detail::crc32c_instruction() { return nullptr; }

}  // namespace tern
