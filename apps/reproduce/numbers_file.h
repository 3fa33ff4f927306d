#pragma once

#include <filesystem>
#include <optional>

#include "tern/apps/reproduce/run.h"

namespace tern {

// What a study found, and the seconds that it took, as JSON with a checksum; numbers read back exactly.

/// An Error where a number is not finite.
void write_numbers(const std::filesystem::path& path, const RunResult& result);
/// nullopt where there is no such file, or it is not as it was written.
std::optional<RunResult> read_numbers(const std::filesystem::path& path);

}  // namespace tern
