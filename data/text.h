#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tern/data/byte_source.h"

// Text files that are read as a whole.

namespace tern {

/// The whole stream.
std::string read_text(ByteSource& source);

/// The parts of `text` between the separators, also empty ones.
std::vector<std::string_view> split_at(std::string_view text, char separator);

/// The parts of `text` between spaces, tabs and carriage returns. None is empty.
std::vector<std::string_view> words_in(std::string_view text);

}  // namespace tern
