#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tern {

/// `text` as one line that a terminal shows as it is: escapes, \n and \x1b, stand for control bytes, for \, " and for
/// what is not UTF-8.
inline std::string escaped(std::string_view text) {
  const std::string quoted = fmt::format("{:?}", text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace tern
