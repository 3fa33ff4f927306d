#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tern/apps/reproduce/run.h"

namespace tern {

// What the --log of a training run says, which may still be written.

/// Of a run that has ended by itself; nullopt of any other, or where there is no log.
std::optional<RunResult> read_result(const std::filesystem::path& log);

/// The step that a run under way has come to; nullopt where no step or evaluation stands last.
std::optional<int64_t> read_step(const std::filesystem::path& log);

}  // namespace tern
