#pragma once

#include <memory>
#include <span>

#include "tern/dist/codec.h"
#include "tern/dist/codec/options.h"

namespace tern {

/// A codec that specs can name. Adding one is a file with its entry, and a line in table.cpp.
struct CodecEntry {
  const char* name;
  const char* parameters;  ///< with their defaults and choices
  const char* bits;        ///< per element
  const char* promise;
  std::unique_ptr<GradientCodec> (*make)(CodecOptions& options);
};

std::span<const CodecEntry* const> codec_table();

extern const CodecEntry none_entry, fp16_entry, bf16_entry, ternary_entry, qsgd_entry, onebit_entry, topk_entry,
    randk_entry;

}  // namespace tern
