#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tern/core/atomic_file.h"

namespace tern {

/// The file appears whole, or the old one stays.
inline void write_text(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace tern
