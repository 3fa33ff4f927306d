#include "tern/dist/codec_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Whether the whole of `text` is a number from `least` to `most`; if so, `value`.
template <class Number>
bool read(const std::string& text, Number least, Number most, Number& value) {
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last && value >= least && value <= most;
}

}  // namespace

CodecOptions::CodecOptions(std::string codec, std::string_view parameters) : codec_(std::move(codec)) {
  while (!parameters.empty()) {
    const std::string_view part = parameters.substr(0, parameters.find(','));
    const size_t equals = part.find('=');
    check_input(equals != std::string_view::npos && equals > 0, "codec ", codec_, ": '", part,
                "' is no parameter; expected NAME=VALUE");
    std::string name(part.substr(0, equals));
    check_input(!has(name.c_str()), "codec ", codec_, ": parameter '", name, "' is given twice");
    given_.emplace_back(std::move(name), part.substr(equals + 1));
    check_input(part.size() + 1 != parameters.size(), "codec ", codec_, ": nothing follows the last comma");
    parameters.remove_prefix(std::min(part.size() + 1, parameters.size()));
  }
}

bool CodecOptions::has(const char* name) const {
  return std::ranges::any_of(given_, [=](const auto& each) { return each.first == name; });
}

const std::string* CodecOptions::take(const char* name) {
  known_.emplace_back(name);
  const auto found = std::ranges::find_if(given_, [=](const auto& each) { return each.first == name; });
  return found == given_.end() ? nullptr : &found->second;
}

double CodecOptions::number(const char* name, double fallback, double least, double most) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  double value = 0;
  check_input(read(*text, least, most, value), "codec ", codec_, ": ", name, "=", *text, "; expected a number from ",
              least, " to ", most);
  return value;
}

int64_t CodecOptions::integer(const char* name, int64_t fallback, int64_t least, int64_t most) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  int64_t value = 0;
  check_input(read(*text, least, most, value), "codec ", codec_, ": ", name, "=", *text,
              "; expected a whole number from ", least, " to ", most);
  return value;
}

int CodecOptions::choice(const char* name, int fallback, std::span<const char* const> words) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  const auto found = std::ranges::find(words, std::string_view(*text));
  check_input(found != words.end(), "codec ", codec_, ": ", name, "=", *text, "; expected ",
              fmt::format("{}", fmt::join(words, " or ")));
  return static_cast<int>(found - words.begin());
}

void CodecOptions::finish() const {
  for (const auto& [name, value] : given_)
    check_input(std::ranges::find(known_, name) != known_.end(), "codec ", codec_, ": no parameter '", name,
                "'; it has ", known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", ")));
}

}  // namespace tern
