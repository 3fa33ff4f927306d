#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tern {

/// `text` as one line that is safe to print on a terminal. Control bytes, \, " and bytes that are not UTF-8 become
/// escapes such as `\n` and `\x1b`.
inline std::string escaped(std::string_view text) {
  const std::string quoted = fmt::format("{:?}", text);
  return quoted.substr(1, quoted.size() - 2);
}

/// As `escaped`, but keeps \ and " as they are, so that a second call changes nothing. For text from another process.
inline std::string printable(std::string_view text) {
  const std::string all = escaped(text);
  std::string some;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == '\\' && (all[i + 1] == '\\' || all[i + 1] == '"')) ++i;
    some += all[i];
  }
  return some;
}

}  // namespace tern
