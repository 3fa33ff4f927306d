#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tern/core/tensor.h"

namespace tern {

/// Reads the mel-frequency cepstra of an utterance, as CMU Sphinx writes them into .mfc files: a count of numbers,
/// int32, and the numbers, f32, all big-endian; `columns` numbers for each frame. Returns f32 [frames, columns]. Throws
/// InputError unless the count agrees with the file's length, there is a frame or more, and all numbers are within
/// ±1e6. The message gives `name`, the byte, what was found and what was expected.
Tensor parse_mfc(std::span<const uint8_t> file, const std::string& name, int64_t columns);

}  // namespace tern
