#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tern/core/state_dict.h"

namespace tern {

using Metadata = std::map<std::string, std::string>;

/// The contents of a safetensors file (format: github.com/huggingface/safetensors): named tensors, and named texts.
struct SafetensorsFile {
  StateDict tensors;  ///< row-major, on the CPU, in the order of the header
  Metadata metadata;
  std::string checksum = {};  ///< tern's CRC-32C, verified, as eight hexadecimal digits; empty if the file has none
};

/// Writes `tensors` atomically (see AtomicFile), each row-major. The widest element types come first in the data, so
/// that each tensor is aligned. Adds the metadata entry "crc32c": the CRC-32C of the whole file in eight hexadecimal
/// digits, computed with "00000000" in their place. Returns these digits. Throws Error, and leaves an older file as
/// it is, if `metadata` has an entry "crc32c", or a tensor is undefined, has the name "__metadata__" or a name that is
/// not UTF-8, or if the names are too many for the format.
std::string write_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                              const Metadata& metadata = {});

/// Reads a file from tern or any other writer. Supports F32, F64, F16 (as f32), BF16, I64 and U8, and at most 8
/// dimensions. Checks every length against the size of the file before it allocates. Throws InputError if the file is
/// missing, truncated, longer than its header says or malformed, or if its checksum is wrong. The message names the
/// file, the offset, what was found and what was expected. A tensor of the name, element type and shape of one of
/// `into`, row-major on the CPU, is read into its memory, so that a model is loaded without a second copy of it. After
/// an error these tensors have any values.
SafetensorsFile read_safetensors(const std::filesystem::path& path, const StateDict& into = {});
/// Reads only the metadata, without the entry of the checksum, which is not checked.
Metadata read_safetensors_metadata(const std::filesystem::path& path);

}  // namespace tern
