#include "tern/apps/reproduce/accuracy_cells.h"

#include <fmt/format.h>

#include <cmath>

namespace tern {

std::string mean_cell(const Sample& sample) {
  if (sample.count == 0) return "–";
  const std::string mean = fmt::format("{:.2f}", sample.mean);
  return sample.count > 1 ? mean + fmt::format(" ± {:.2f}", sample.deviation) : mean;
}

std::string accuracy_cell(const std::vector<double>& values, int64_t seeds) {
  const std::string mean = mean_cell(summarize(values));
  return values.empty() || std::ssize(values) >= seeds ? mean : mean + fmt::format(" ({} of {})", values.size(), seeds);
}

std::string difference_cell(const Sample& first, const Sample& second) {
  const std::string text = fmt::format("{:+.2f}", first.mean - second.mean);
  if (first.count < 2 || second.count < 2) return text;
  return text + fmt::format(" ± {:.2f}", std::hypot(first.standard_error(), second.standard_error()));
}

}  // namespace tern
