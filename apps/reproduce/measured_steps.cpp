#include "tern/apps/reproduce/measured_steps.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern::reproduce {

const MeasuredStep* MeasuredSteps::fastest(const std::string& network) const {
  const MeasuredStep* best = nullptr;
  for (const MeasuredStep& step : steps)
    if (step.network == network && (best == nullptr || step.seconds < best->seconds)) best = &step;
  return best;
}

MeasuredSteps read_measured_steps(const std::filesystem::path& path) {
  std::ifstream file(path);
  check_input(file.good(), "--steps: ", path.string(), " cannot be read");
  MeasuredSteps found;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.starts_with('#')) {
      if (found.device.empty() && line.size() > 2) found.device = printable(line.substr(2));
      continue;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    MeasuredStep step;
    double milliseconds = 0;
    std::istringstream words(line);
    const bool read = static_cast<bool>(words >> step.network >> step.images >> step.math >> step.way >> milliseconds);
    check_input(read && step.images >= 1 && std::isfinite(milliseconds) && milliseconds > 0, "--steps: ", path.string(),
                ", line ", number, ": found '", printable(line),
                "', expected network, images, precision, way and milliseconds, as tests/gpu/steps prints them");
    step.seconds = milliseconds / 1000;
    found.steps.push_back(std::move(step));
  }
  check_input(!found.steps.empty(), "--steps: ", path.string(), " has no row of a step, expected one or more");
  return found;
}

}  // namespace tern::reproduce
