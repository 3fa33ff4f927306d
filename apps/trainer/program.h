#pragma once

#include <string>

namespace tern {

/// This program's file, so that what it starts goes by the same name.
std::string program_path();

}  // namespace tern
