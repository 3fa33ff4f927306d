#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/error.h"
#include "tern/trainer/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tern::trainer {

// Conversion between a setting and its words on a command line. `read_value` throws InputError with the words found and
// what it expected, without the flag's name. The result of `write_value` reads back to the same value.

void read_value(const std::vector<std::string>& words, std::string& value);
void read_value(const std::vector<std::string>& words, int64_t& value);
void read_value(const std::vector<std::string>& words, double& value);
void read_value(const std::vector<std::string>& words, std::vector<int64_t>& value);
void read_value(const std::vector<std::string>& words, std::vector<double>& value);
void read_value(const std::vector<std::string>& words, std::vector<std::string>& value);

/// Joins the words: "a|b|c".
std::string listed(std::span<const std::string_view> words);

/// The enumerator whose word is `word`; nullopt if there is none.
template <Worded E>
std::optional<E> find_word(std::string_view word) {
  const auto words = words_of(E{});
  const auto found = std::ranges::find(words, word);
  return found == words.end() ? std::nullopt : std::optional(static_cast<E>(found - words.begin()));
}

template <Worded E>
void read_value(const std::vector<std::string>& words, E& value) {
  const auto found = find_word<E>(words.back());
  check_input(found.has_value(), "found '", words.back(), "', expected ", listed(words_of(E{})));
  value = *found;
}
template <class T>
void read_value(const std::vector<std::string>& words, std::optional<T>& value) {
  read_value(words, value.emplace());
}

/// The value for a configuration file; empty if there is nothing to write.
std::string write_value(const std::string& value);
std::string write_value(int64_t value);
std::string write_value(double value);
std::string write_value(bool value);
std::string write_value(const std::vector<int64_t>& value);
std::string write_value(const std::vector<double>& value);
std::string write_value(const std::vector<std::string>& value);
template <Worded E>
std::string write_value(E value) {
  return write_value(to_string(value));
}
template <class T>
std::string write_value(const std::optional<T>& value) {
  return value ? write_value(*value) : "";
}

/// The value for a reader: as `write_value`, but without quotes around words.
std::string show_value(const auto& value) { return write_value(value); }
inline std::string show_value(const std::string& value) { return value; }
std::string show_value(const Worded auto& value) { return to_string(value); }

/// Throws InputError for a word that is no option of `app`, with a suggestion. `dashes` stand before the options'
/// names.
[[noreturn]] void fail_unknown(const CLI::App& app, const char* kind, const std::string& word,
                               const std::string& dashes);
/// The same for the first word that a parsed `app` does not know.
void refuse_unknown(const CLI::App& app);
/// Whether an option takes no value but true and false.
bool is_switch(const CLI::Option& option);
/// Throws InputError if `word` is neither true nor false.
void check_switch(const CLI::Option& option, const std::string& word);
/// The options of `app` that a command line names by words that begin with '-', with the names that were used. Throws
/// InputError if one is given twice, or has no value, or another option as its value, or if a switch has a wrong one.
std::map<const CLI::Option*, std::string> check_words(const CLI::App& app, int argc, const char* const* argv);
/// Parses a command line, to which it adds --version. Returns the text to print if the user asks for `version` or help.
/// Throws InputError, for an unknown word with a suggestion.
std::optional<std::string> parse_words(CLI::App& app, int argc, const char* const* argv, const std::string& version);

/// Adds an option to `app`; `read` receives the words after it. If `read` throws InputError, the flag is put before its
/// message.
CLI::Option* add_option(CLI::App& app, const std::string& flag, const std::string& value, const std::string& help,
                        const std::function<void(const std::vector<std::string>&)>& read);
/// The same, but reads the words into `field` with read_value. `field` must outlive `app`.
template <class T>
void add_value_option(CLI::App& app, const std::string& flag, const std::string& value, T& field,
                      const std::string& help) {
  add_option(app, flag, value, help, [&field](const std::vector<std::string>& words) { read_value(words, field); });
}

}  // namespace tern::trainer
