#include "tern/data/text.h"

#include <algorithm>

namespace tern {

std::string read_text(ByteSource& source) {
  const std::vector<uint8_t> bytes = read_whole(source);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string_view> words_in(std::string_view text) {
  constexpr const char* kBlank = " \t\r";
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return words;
}

}  // namespace tern
