#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tern::reproduce {

/// A training step that was measured: a row of the table that `tests/gpu/steps` prints.
struct MeasuredStep {
  std::string network;  ///< "alexnet"
  int64_t images = 0;
  std::string math, way;  ///< "fp32", "tern-graph"
  double seconds = 0;
};

/// The rows of a file, and the device in its first line.
struct MeasuredSteps {
  std::string device;
  std::vector<MeasuredStep> steps;

  /// The fastest step of a network; null if there is none.
  const MeasuredStep* fastest(const std::string& network) const;
};

/// Reads the output of `tests/gpu/steps` or `torch_steps.py`: "# DEVICE", then rows of network, images, precision, way,
/// milliseconds, and more columns that are not read. Other lines that begin with # are skipped. Throws InputError that
/// names file and line.
MeasuredSteps read_measured_steps(const std::filesystem::path& path);

}  // namespace tern::reproduce
