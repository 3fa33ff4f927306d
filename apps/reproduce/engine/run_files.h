#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

// What the --log of a training run says, which may still be written.

/// Of a run that has ended by itself; nullopt of any other, or where there is no log.
std::optional<RunResult> read_result(const std::filesystem::path& log);

/// The step that a run under way has come to; nullopt where no step or evaluation stands last.
std::optional<int64_t> read_step(const std::filesystem::path& log);

// What a study found, and the seconds that it took, as JSON with a checksum; numbers read back exactly.

/// An Error where a number is not finite.
void write_numbers(const std::filesystem::path& path, const RunResult& result);
/// nullopt where there is no such file, or it is not as it was written.
std::optional<RunResult> read_numbers(const std::filesystem::path& path);

}  // namespace tern::reproduce
