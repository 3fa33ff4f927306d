#include "tern/trainer/flags/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>

#include "tern/core/error.h"

namespace tern::trainer {
namespace {

template <class T>
T read_number(const std::string& word, const char* expected) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  using Limits = std::numeric_limits<T>;
  check_input(error != std::errc::result_out_of_range, "found '", word, "', expected ", expected, " from ",
              Limits::lowest(), " to ", Limits::max());
  check_input(error == std::errc{} && end == word.data() + word.size(), "found '", word, "', expected ", expected);
  return value;
}

template <class T>
void read_numbers(const std::vector<std::string>& words, const char* expected, std::vector<T>& values) {
  values.clear();
  for (const auto& word : words)
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = word.find(',', begin);
      values.push_back(read_number<T>(word.substr(begin, end - begin), expected));
    }
}

template <class T>
std::string write_numbers(const std::vector<T>& values) {
  return values.empty() ? "" : fmt::format("[{}]", fmt::join(values, ","));
}

std::string quoted(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  return text + '"';
}

}  // namespace

void read_value(const std::vector<std::string>& words, std::string& value) { value = words.back(); }
void read_value(const std::vector<std::string>& words, int64_t& value) {
  value = read_number<int64_t>(words.back(), "a whole number");
}
void read_value(const std::vector<std::string>& words, double& value) {
  value = read_number<double>(words.back(), "a number");
}
void read_value(const std::vector<std::string>& words, std::vector<int64_t>& value) {
  read_numbers(words, "whole numbers with commas between", value);
}
void read_value(const std::vector<std::string>& words, std::vector<double>& value) {
  read_numbers(words, "numbers with commas between", value);
}
void read_value(const std::vector<std::string>& words, std::vector<std::string>& value) { value = words; }

std::string write_value(const std::string& value) { return value.empty() ? "" : quoted(value); }
std::string write_value(int64_t value) { return fmt::format("{}", value); }
std::string write_value(double value) { return fmt::format("{}", value); }
std::string write_value(bool value) { return value ? "true" : "false"; }
std::string write_value(const std::vector<int64_t>& value) { return write_numbers(value); }
std::string write_value(const std::vector<double>& value) { return write_numbers(value); }
std::string write_value(const std::vector<std::string>& value) {
  std::string text;
  for (const auto& each : value) text += join({text.empty() ? "[" : ",", quoted(each)});
  return value.empty() ? "" : text + ']';
}

CLI::Option* add_option(CLI::App& app, const std::string& flag, const std::string& value, const std::string& help,
                        const std::function<void(const std::vector<std::string>&)>& read) {
  const CLI::callback_t callback = [flag, read](const CLI::results_t& words) {
    try {
      read(words);
    } catch (const InputError& error) {
      throw InputError(flag + ": " + error.what());
    }
    return true;
  };
  return app.add_option(flag, callback, help)->type_name(value);
}

std::string listed(std::span<const std::string_view> words) { return fmt::format("{}", fmt::join(words, "|")); }

void fail_unknown(const CLI::App& app, const char* kind, const std::string& word, const std::string& dashes) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (const auto& own = option->get_lnames(); !own.empty()) names.push_back(dashes + own.front());
  fail_input({"unknown ", kind, " '", word, "'", suggestion(word, names)});
}

void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty()) fail_unknown(app, "argument", unknown.front().substr(0, unknown.front().find('=')), "--");
}

bool is_switch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

void check_switch(const CLI::Option& option, const std::string& word) {
  check_input(word == "true" || word == "false", option.get_name(), ": found '", word, "', expected true or false");
}

std::map<const CLI::Option*, std::string> check_words(const CLI::App& app, int argc, const char* const* argv) {
  std::map<const CLI::Option*, std::string> given;
  const CLI::Option* waiting = nullptr;  // the option whose value comes next
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = name.starts_with('-') ? app.get_option_no_throw(name) : nullptr;
    if (option && waiting)
      fail_input({waiting->get_name(), ": found the flag '", word, "', expected ", waiting->get_type_name()});
    if (option) {
      const auto [first, is_new] = given.emplace(option, name);
      check_input(is_new, name, ": given ", first->second == name ? "twice" : "beside " + first->second,
                  ", expected once");
      if (is_switch(*option) && equals != std::string::npos) check_switch(*option, word.substr(equals + 1));
    }
    waiting = option && !is_switch(*option) && equals == std::string::npos ? option : nullptr;
  }
  if (waiting) fail_input({waiting->get_name(), ": found nothing after it, expected ", waiting->get_type_name()});
  return given;
}

std::optional<std::string> parse_words(CLI::App& app, int argc, const char* const* argv, const std::string& version) {
  app.set_version_flag("--version", version, "Print the versions of tern and what it uses");
  app.allow_extras();
  check_words(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    return version;
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  refuse_unknown(app);
  return {};
}

}  // namespace tern::trainer
