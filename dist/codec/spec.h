#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/dist/codec/codec.h"

namespace tern {

/// A spec cut at its first colon: NAME or NAME:PARAMETERS.
struct SpecParts {
  std::string_view name, parameters;
  bool has_colon;

  explicit SpecParts(std::string_view spec)
      : name(spec.substr(0, spec.find(':'))),
        parameters(spec.substr(std::min(name.size() + 1, spec.size()))),
        has_colon(name.size() < spec.size()) {}
};

/// The parameters of one codec (or exchange) in a spec, for example "clip=2.5,pack=2bit". Its maker asks for each
/// parameter once, then calls `finish`. InputErrors name the owner, the parameter, and what is allowed.
class SpecParameters {
 public:
  /// `kind` is "codec" or "exchange", for messages.
  SpecParameters(std::string_view kind, const SpecParts& spec);

  /// A number in [least, most]; `fallback` if the spec does not give it.
  double number(const char* name, double fallback, double least, double most);
  int64_t integer(const char* name, int64_t fallback, int64_t least, int64_t most);
  /// The index in `words` of the given word; `fallback` if the spec does not give one.
  int choice(const char* name, int fallback, std::span<const char* const> words);
  bool has(const char* name) const;
  /// Throws InputError if the spec gives a parameter that the codec did not ask for, or ends with its colon.
  void finish() const;

 private:
  const std::string* take(const char* name);

  std::string owner_;
  bool has_colon_;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> known_;
};

// tern's own codecs. To add one, write a file with its entry, and add the entry here and to the list in spec.cpp.

extern const CodecEntry none_entry, fp16_entry, bf16_entry, ternary_entry, qsgd_entry, onebit_entry, topk_entry,
    randk_entry, topk_block_entry, hadamard_entry;

/// `error-feedback:CODEC` adds what a message leaves out to the tensor's next gradient. For an unbiased codec, the
/// message also holds a factor for each tensor, and stands for the factor times what CODEC decodes. The factor is the
/// one from 0 to 1 that brings this product nearest to what was encoded. So what the message leaves out is never longer
/// than what was encoded, and the residual stays bounded. Throws InputError if the codec is exact or already has error
/// feedback.
std::unique_ptr<GradientCodec> with_error_feedback(std::unique_ptr<GradientCodec> codec);
/// The same for a codec with error feedback built in: its spec does not change. `decay` times the residual is added to
/// the next gradient.
std::unique_ptr<GradientCodec> with_built_in_feedback(std::unique_ptr<GradientCodec> codec, double decay = 1);

}  // namespace tern
