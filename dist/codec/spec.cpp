#include "tern/dist/codec/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tern/core/error.h"

namespace tern {
namespace {

/// Reads `text` into `value`. Returns true if the whole of `text` is a number from `least` to `most`.
template <class Number>
bool read(const std::string& text, Number least, Number most, Number& value) {
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last && value >= least && value <= most;
}

constexpr std::string_view kFeedback = "error-feedback";

std::vector<const CodecEntry*> with_own(std::span<const CodecEntry> own) {
  std::vector<const CodecEntry*> all = {&none_entry,   &fp16_entry, &bf16_entry,  &ternary_entry,    &qsgd_entry,
                                        &onebit_entry, &topk_entry, &randk_entry, &topk_block_entry, &hadamard_entry};
  for (const CodecEntry& entry : own) {
    const bool taken = entry.name == kFeedback || std::ranges::any_of(all, [&](const CodecEntry* other) {
                         return std::string_view(other->name) == entry.name;
                       });
    check(!taken, "codec ", entry.name, ": another has this name already");
    all.push_back(&entry);
  }
  return all;
}

}  // namespace

SpecParameters::SpecParameters(std::string_view kind, const SpecParts& spec)
    : owner_(join({kind, " ", spec.name})), has_colon_(spec.has_colon) {
  std::string_view parameters = spec.parameters;
  while (!parameters.empty()) {
    const std::string_view part = parameters.substr(0, parameters.find(','));
    const size_t equals = part.find('=');
    check_input(equals != std::string_view::npos && equals > 0, owner_, ": '", part,
                "' is no parameter; expected NAME=VALUE");
    std::string name(part.substr(0, equals));
    check_input(!has(name.c_str()), owner_, ": parameter '", name, "' is given twice");
    given_.emplace_back(std::move(name), part.substr(equals + 1));
    check_input(part.size() + 1 != parameters.size(), owner_, ": nothing follows the last comma");
    parameters.remove_prefix(std::min(part.size() + 1, parameters.size()));
  }
}

bool SpecParameters::has(const char* name) const {
  return std::ranges::any_of(given_, [=](const auto& each) { return each.first == name; });
}

const std::string* SpecParameters::take(const char* name) {
  known_.emplace_back(name);
  const auto found = std::ranges::find_if(given_, [=](const auto& each) { return each.first == name; });
  return found == given_.end() ? nullptr : &found->second;
}

double SpecParameters::number(const char* name, double fallback, double least, double most) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  double value = 0;
  check_input(read(*text, least, most, value), owner_, ": ", name, "=", *text, "; expected a number from ", least,
              " to ", most);
  return value;
}

int64_t SpecParameters::integer(const char* name, int64_t fallback, int64_t least, int64_t most) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  int64_t value = 0;
  check_input(read(*text, least, most, value), owner_, ": ", name, "=", *text, "; expected a whole number from ", least,
              " to ", most);
  return value;
}

int SpecParameters::choice(const char* name, int fallback, std::span<const char* const> words) {
  const std::string* text = take(name);
  if (text == nullptr) return fallback;
  const auto found = std::ranges::find(words, std::string_view(*text));
  check_input(found != words.end(), owner_, ": ", name, "=", *text, "; expected ",
              fmt::format("{}", fmt::join(words, " or ")));
  return static_cast<int>(found - words.begin());
}

void SpecParameters::finish() const {
  const std::string known = known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", "));
  check_input(!has_colon_ || !given_.empty(), owner_,
              known_.empty() ? ": found ':', expected nothing after the name, because it has no parameters"
                             : ": no parameter follows ':'; it has " + known);
  for (const auto& [name, value] : given_)
    check_input(std::ranges::find(known_, name) != known_.end(), owner_, ": no parameter '", name, "'; it has ", known);
}

std::unique_ptr<GradientCodec> make_codec(std::string_view spec, std::span<const CodecEntry> own) {
  const SpecParts parts(spec);
  const std::string_view name = parts.name;
  if (name == kFeedback) {
    check_input(!parts.parameters.empty(),
                "codec error-feedback: expected a codec after it, as in error-feedback:topk");
    return with_error_feedback(make_codec(parts.parameters, own));
  }
  for (const CodecEntry* entry : with_own(own)) {
    if (name != entry->name) continue;
    SpecParameters options("codec", parts);
    return entry->make(options);
  }
  std::vector<std::string> names = codec_names(own);
  names.emplace_back(kFeedback);
  const std::string nearest = suggestion(name, names);
  check_input(nearest.empty(), "no codec '", name, "'", nearest);
  names.pop_back();
  fail_input({"no codec '", name, "'; there are ", fmt::format("{}", fmt::join(names, ", ")),
              ", and error-feedback: before those that lose something"});
}

std::vector<std::string> codec_names(std::span<const CodecEntry> own) {
  std::vector<std::string> names;
  for (const CodecEntry* entry : with_own(own)) names.emplace_back(entry->name);
  return names;
}

std::string codec_help(std::span<const CodecEntry> own) {
  std::string help = "A codec is NAME or NAME:PARAMETER=VALUE,...\n";
  for (const CodecEntry* entry : with_own(own)) {
    help += join({"\n", entry->name, "\n  parameters  ", entry->parameters, "\n  bits        ", entry->bits,
                  "\n  promise     ", entry->promise, "\n"});
  }
  return help +
         "\nerror-feedback:CODEC\n  parameters  CODEC's\n  bits        CODEC's; and 32 a tensor if CODEC is unbiased\n"
         "  promise     what one step leaves out is added to the next step's gradient; for an unbiased codec, the\n"
         "              message also holds a factor from 0 to 1 for each tensor, so that it stands for what is\n"
         "              nearest to what was coded\n";
}

}  // namespace tern
