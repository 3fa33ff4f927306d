#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

// Readers of the --log file of a training run. The run may still write it. They throw InputError that names the file if
// its events are not those of a run.

/// The result of a run that has finished; nullopt if it has not, or if there is no log.
std::optional<RunResult> read_result(const std::filesystem::path& log);

/// The present step of a run; nullopt if the last line is neither a step nor an evaluation.
std::optional<int64_t> read_step(const std::filesystem::path& log);

// The file of a study's numbers, duration and processor: JSON with a checksum. Numbers read back exactly.

/// Throws Error if a number is not finite.
void write_numbers(const std::filesystem::path& path, const RunResult& result);
/// Returns nullopt if the file is missing or damaged.
std::optional<RunResult> read_numbers(const std::filesystem::path& path);

// The result of a finished run in a small file, so that a table can go on without the run's folder, on another machine.
// It has the run's program, flags and processor, and all of the result but the losses of single steps. JSON with a
// checksum.

void keep_result(const std::filesystem::path& path, const Run& run, const RunResult& result);
/// Returns nullopt if the file is missing. Throws InputError if it is damaged, or of a run with another program or
/// flags.
std::optional<RunResult> kept_result(const std::filesystem::path& path, const Run& run);

/// False if the run measures time, and the result's time is of another processor.
bool counts_here(const Run& run, const RunResult& result);

}  // namespace tern::reproduce
