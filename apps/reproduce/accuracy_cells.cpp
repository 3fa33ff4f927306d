#include "tern/apps/reproduce/accuracy_cells.h"

#include <fmt/format.h>

#include <cmath>

namespace tern {

std::string accuracy_cell(const std::vector<double>& values, int64_t seeds) {
  if (values.empty()) return "–";
  const Sample sample = summarize(values);
  std::string text = fmt::format("{:.2f}", sample.mean);
  if (sample.count > 1) text += fmt::format(" ± {:.2f}", sample.deviation);
  return static_cast<int64_t>(sample.count) < seeds ? text + fmt::format(" ({} of {})", sample.count, seeds) : text;
}

std::string difference_cell(const Sample& first, const Sample& second) {
  const std::string text = fmt::format("{:+.2f}", first.mean - second.mean);
  if (first.count < 2 || second.count < 2) return text;
  return text + fmt::format(" ± {:.2f}", std::hypot(first.standard_error(), second.standard_error()));
}

}  // namespace tern
