#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/dist/codec/codec.h"

namespace tern {

/// The parameters of one codec in a spec, "clip=2.5,pack=2bit": each is asked for once, then `finish`. InputErrors name
/// the codec, the parameter, and what would be right.
class CodecOptions {
 public:
  CodecOptions(std::string codec, std::string_view parameters);

  /// A number in [least, most].
  double number(const char* name, double fallback, double least, double most);
  int64_t integer(const char* name, int64_t fallback, int64_t least, int64_t most);
  /// The index of the word given among `words`.
  int choice(const char* name, int fallback, std::span<const char* const> words);
  bool has(const char* name) const;
  /// An error where a parameter was given that nobody asked for.
  void finish() const;

 private:
  const std::string* take(const char* name);

  std::string codec_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> known_;
};

// tern's own codecs. Adding one is a file with its entry, and a line here and in table.cpp.

extern const CodecEntry none_entry, fp16_entry, bf16_entry, ternary_entry, qsgd_entry, onebit_entry, topk_entry,
    randk_entry;

/// `error-feedback:CODEC`: what a message leaves out is added to the tensor's next gradient. An unbiased codec is
/// scaled by 1/(1+ω), which the message begins with: then it contracts, and the residual stays bounded. An InputError
/// where the codec has error feedback already.
std::unique_ptr<GradientCodec> with_error_feedback(std::unique_ptr<GradientCodec> codec);
/// The same for a codec that has it built in: its spec stays as it is.
std::unique_ptr<GradientCodec> with_built_in_feedback(std::unique_ptr<GradientCodec> codec);

}  // namespace tern
