#pragma once

#include <cstddef>
#include <string>

namespace tern {

/// `bytes` of the system's randomness as hexadecimal digits: a name that nobody can guess and no other process takes.
std::string random_id(size_t bytes);

}  // namespace tern
