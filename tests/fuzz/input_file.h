#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace tern {

/// Writes an input to the only file of this process, and returns its path.
inline const std::filesystem::path& input_file(std::string_view bytes) {
  static const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tern-fuzz-" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace tern
