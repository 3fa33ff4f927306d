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

/// The same, but \ and " stay as they are, so that a second call changes nothing: for text that another process sent.
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
