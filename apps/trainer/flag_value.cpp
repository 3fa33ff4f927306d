#include "tern/apps/trainer/flag_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>

#include "tern/core/error.h"

namespace tern {
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
void read_value(const std::vector<std::string>& words, std::optional<int64_t>& value) {
  read_value(words, value.emplace());
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
std::string write_value(const std::optional<int64_t>& value) { return value ? write_value(*value) : ""; }
std::string write_value(const std::vector<int64_t>& value) { return write_numbers(value); }
std::string write_value(const std::vector<double>& value) { return write_numbers(value); }
std::string write_value(const std::vector<std::string>& value) {
  std::string text;
  for (const auto& each : value) text += join({text.empty() ? "[" : ",", quoted(each)});
  return value.empty() ? "" : text + ']';
}

}  // namespace tern
