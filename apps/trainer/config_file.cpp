#include "tern/apps/trainer/config_file.h"

#include <CLI/StringTools.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Takes the values of one line apart.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : text_(text) {}

  std::vector<std::string> read() {
    if (!text_.starts_with('[')) return {read_one("")};
    std::vector<std::string> values;
    do {
      text_.remove_prefix(1);
      values.push_back(read_one(",]"));
    } while (text_.starts_with(','));
    check_input(text_ == "]", "expected ']' at the end");
    return values;
  }

 private:
  /// Up to the first of `ends`, or to the end where there are none.
  std::string read_one(std::string_view ends) {
    skip_spaces();
    std::string value;
    if (text_.starts_with('"')) {
      value = read_quoted();
      skip_spaces();
      check_input(text_.empty() || ends.find(text_[0]) != std::string_view::npos, "found '", text_,
                  "' after the closing quote");
      return value;
    }
    value = text_.substr(0, ends.empty() ? text_.size() : text_.find_first_of(ends));
    text_.remove_prefix(value.size());
    return CLI::detail::trim(value);
  }

  std::string read_quoted() {
    std::string value;
    for (size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        text_.remove_prefix(i + 1);
        return value;
      }
      const bool escaped = text_[i] == '\\' && i + 1 < text_.size();
      if (escaped) ++i;
      value += escaped && text_[i] == 'n' ? '\n' : text_[i];
    }
    fail_input({"expected a closing quote"});
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.size(), text_.find_first_not_of(" \t"))); }

  std::string_view text_;
};

}  // namespace

std::vector<ConfigLine> read_config(const std::string& path) {
  check_input(!std::filesystem::is_directory(path), "--config: ", path, ": is a folder, expected a file of flags");
  std::ifstream file(path);
  check_input(file.is_open(), "--config: ", path, ": cannot be read: ", std::strerror(errno));
  std::vector<ConfigLine> found;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    CLI::detail::trim(text);
    if (text.empty() || text[0] == '#') continue;
    const size_t equals = text.find('=');
    ConfigLine line{.number = number, .flag = text.substr(0, equals), .values = {"true"}};
    CLI::detail::trim(line.flag);
    try {
      if (equals != std::string::npos)
        line.values = ValueReader(CLI::detail::trim_copy(text.substr(equals + 1))).read();
    } catch (const InputError& error) {
      throw InputError(join({"--config: ", path, ": line ", number, ": ", error.what()}));
    }
    found.push_back(std::move(line));
  }
  return found;
}

}  // namespace tern
