#include "tern/networks/ctc_decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "tern/core/log_add.h"

namespace tern::networks {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();
const double kLeast = std::log(1e-4);  ///< of a class that extends a beginning

using Labels = std::vector<int64_t>;

/// log of the probabilities of the paths of a beginning: of those that end with a blank, and with its last label.
struct Paths {
  double blank = kImpossible, label = kImpossible;
  double total() const { return log_add(blank, label); }
  /// `total` for comparisons: NaN is the least.
  double rank() const { return std::isnan(total()) ? kImpossible : total(); }
};
using Beam = std::map<Labels, Paths>;

/// The beginnings after one more frame.
Beam extended(const Beam& before, std::span<const float> frame, int64_t blank) {
  Beam after;
  for (const auto& [labels, paths] : before) {
    Paths& same = after[labels];
    same.blank = log_add(same.blank, paths.total() + frame[static_cast<size_t>(blank)]);
    if (!labels.empty()) same.label = log_add(same.label, paths.label + frame[static_cast<size_t>(labels.back())]);
    for (int64_t c = 0; c < std::ssize(frame); ++c) {
      const double emission = frame[static_cast<size_t>(c)];
      if (c == blank || emission < kLeast) continue;
      Labels longer = labels;
      longer.push_back(c);
      Paths& next = after[longer];
      // Behind the same label, only a path with a blank begins a new one.
      const bool repeats = !labels.empty() && labels.back() == c;
      next.label = log_add(next.label, (repeats ? paths.blank : paths.total()) + emission);
    }
  }
  return after;
}

/// Keeps the `count` likeliest beginnings; of equal ones, the first.
void prune(Beam& beam, int64_t count) {
  if (std::ssize(beam) <= count) return;
  std::vector<std::pair<double, int64_t>> order;  // the best comes first
  for (const auto& [labels, paths] : beam) order.emplace_back(-paths.rank(), std::ssize(order));
  std::nth_element(order.begin(), order.begin() + count - 1, order.end());
  const auto last = order[static_cast<size_t>(count - 1)];
  int64_t place = 0;
  std::erase_if(beam, [&](const auto& entry) { return std::pair(-entry.second.rank(), place++) > last; });
}

}  // namespace

std::vector<int64_t> best_path(const CtcFrames& output) {
  std::vector<int64_t> labels;
  int64_t before = output.blank;
  for (int64_t t = 0; t < output.frames; ++t) {
    const auto frame = output.frame(t);
    const int64_t best = std::ranges::max_element(frame) - frame.begin();
    if (best != before && best != output.blank) labels.push_back(best);
    before = best;
  }
  return labels;
}

std::vector<int64_t> beam_search(const CtcFrames& output, int64_t beam) {
  Beam kept = {{Labels{}, Paths{.blank = 0}}};
  for (int64_t t = 0; t < output.frames; ++t) {
    kept = extended(kept, output.frame(t), output.blank);
    prune(kept, beam);
  }
  return std::ranges::max_element(kept, {}, [](const auto& entry) { return entry.second.rank(); })->first;
}

}  // namespace tern::networks
