#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tern/core/state_dict.h"

namespace tern {

using Metadata = std::map<std::string, std::string>;

/// What a safetensors file holds (format: github.com/huggingface/safetensors): named tensors, and text under names.
struct SafetensorsFile {
  StateDict tensors;  ///< row-major, on the CPU, in the header's order
  Metadata metadata;
  std::string checksum = {};  ///< tern's, which was right: eight hexadecimal digits; empty: the file carries none
};

/// Writes `tensors` atomically (see AtomicFile), each row-major; the widest elements come first in the data, so that
/// each tensor is aligned. The metadata's entry "crc32c" is tern's: the CRC-32C of the whole file, eight hexadecimal
/// digits, taken with zeros in their place; it is returned.
std::string write_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                              const Metadata& metadata = {});

/// Reads a file by tern or any other writer: F32, F64, BF16, I64 and U8, 6 dimensions at most. Nothing is allocated
/// before its length is checked against the file's. An InputError names the file, the offset, what was found and what
/// was expected where the file is missing, truncated, longer than its header says, malformed or of a wrong checksum.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

}  // namespace tern
