#include "tern/dist/codec/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/codec/error_feedback.h"

namespace tern {
namespace {

constexpr std::string_view kFeedback = "error-feedback";

std::vector<const CodecEntry*> with_own(std::span<const CodecEntry> own) {
  std::vector<const CodecEntry*> all = {&none_entry, &fp16_entry,   &bf16_entry, &ternary_entry,
                                        &qsgd_entry, &onebit_entry, &topk_entry, &randk_entry};
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

std::unique_ptr<GradientCodec> make_codec(std::string_view spec, std::span<const CodecEntry> own) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const std::string_view name = spec.substr(0, colon), rest = spec.substr(std::min(colon + 1, spec.size()));
  if (name == kFeedback) {
    check_input(!rest.empty(), "codec error-feedback: expected a codec after it, as in error-feedback:topk");
    return with_error_feedback(make_codec(rest, own));
  }
  for (const CodecEntry* entry : with_own(own)) {
    if (name != entry->name) continue;
    CodecOptions options{std::string(name), rest};
    return entry->make(options);
  }
  fail_input({"no codec '", name, "'; there are ", fmt::format("{}", fmt::join(codec_names(own), ", ")),
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
         "\nerror-feedback:CODEC\n  parameters  CODEC's\n  bits        CODEC's, and 32 a tensor\n"
         "  promise     what one step leaves out is added to the next step's gradient; an unbiased codec is scaled by\n"
         "              1/(1 + its variance factor), without which the remainder would grow for ever\n";
}

}  // namespace tern
