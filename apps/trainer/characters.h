#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tern {

/// How many characters UTF-8 text has.
inline size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace tern
