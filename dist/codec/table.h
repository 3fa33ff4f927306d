#pragma once

#include "tern/dist/codec.h"
#include "tern/dist/codec_options.h"

namespace tern {

// tern's own codecs. Adding one is a file with its entry, and a line here and in table.cpp.

extern const CodecEntry none_entry, fp16_entry, bf16_entry, ternary_entry, qsgd_entry, onebit_entry, topk_entry,
    randk_entry;

}  // namespace tern
