#pragma once

#include <string>
#include <vector>

namespace tern {

/// The words as one line that a POSIX shell reads back.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace tern
