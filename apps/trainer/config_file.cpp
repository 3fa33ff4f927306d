#include "tern/apps/trainer/config_file.h"

#include <algorithm>
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

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& file) const {
  std::vector<CLI::ConfigItem> found;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    CLI::detail::trim(line);
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    CLI::ConfigItem item;
    item.name = line.substr(0, equals);
    CLI::detail::trim(item.name);
    try {
      if (equals == std::string::npos)
        item.inputs = {"true"};
      else
        item.inputs = ValueReader(CLI::detail::trim_copy(line.substr(equals + 1))).read();
    } catch (const InputError& error) {
      throw InputError(join({"--config: line ", number, ": ", error.what()}));
    }
    found.push_back(std::move(item));
  }
  return found;
}

}  // namespace tern
