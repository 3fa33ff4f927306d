#include "tern/networks/ctc_decoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tern::networks {
namespace {

using Labels = std::vector<int64_t>;

/// Log-probabilities of frames [frames, classes]; the blank is the last class.
struct Output {
  Output(int64_t frames, int64_t classes, const std::vector<double>& probabilities) : count(frames), width(classes) {
    for (const double probability : probabilities) logs.push_back(static_cast<float>(std::log(probability)));
  }
  CtcFrames frames() const {
    return {.first = logs.data(), .stride = width, .frames = count, .classes = width, .blank = width - 1};
  }
  int64_t count, width;
  std::vector<float> logs;
};

TEST(BestPath, DropsRepetitionsAndBlanks) {
  // 0, 0, blank, 0, 1, 1
  const Output output(6, 3, {0.8, 0.1, 0.1, 0.7, 0.2, 0.1, 0.1, 0.2, 0.7, 0.5, 0.1, 0.4, 0.1, 0.8, 0.1, 0.2, 0.6, 0.2});
  EXPECT_EQ(best_path(output.frames()), (Labels{0, 0, 1}));
  EXPECT_EQ(best_path({.first = nullptr, .stride = 3, .frames = 0, .classes = 3, .blank = 2}), Labels{});
}

TEST(BeamSearch, FindsLabelsThatAreLikelierThanTheBestPath) {
  // The best path, blank and blank, has 0.36. The three paths of label 0 have 0.16 + 0.24 + 0.24.
  const Output output(2, 2, {0.4, 0.6, 0.4, 0.6});
  EXPECT_EQ(best_path(output.frames()), Labels{});
  EXPECT_EQ(beam_search(output.frames(), 4), Labels{0});
}

TEST(BeamSearch, KeepsNoMoreThanItsBeam) {
  // After the first frame, labels 0 and 1 are equal. The first stays, although 1 would have 0.38 in the end.
  const Output output(2, 3, {0.4, 0.4, 0.2, 0.05, 0.9, 0.05});
  EXPECT_EQ(beam_search(output.frames(), 1), (Labels{0, 1}));
  EXPECT_EQ(beam_search(output.frames(), 2), Labels{1});
}

TEST(BeamSearch, TakesNaNAsTheLeast) {
  const Output output(2, 3, {std::nan(""), 0.7, 0.3, 0.05, 0.05, 0.9});
  EXPECT_EQ(beam_search(output.frames(), 1), Labels{1});
  EXPECT_EQ(beam_search(output.frames(), 100), Labels{1});
}

/// The labels with the greatest sum over all paths.
Labels likeliest(const Output& output) {
  std::map<Labels, double> sums;
  const auto paths = static_cast<int64_t>(std::pow(output.width, output.count));
  for (int64_t number = 0; number < paths; ++number) {
    Labels labels;
    double probability = 1;
    int64_t before = output.width - 1, rest = number;
    for (int64_t t = 0; t < output.count; ++t, rest /= output.width) {
      const int64_t c = rest % output.width;
      probability *= std::exp(output.logs[static_cast<size_t>(t * output.width + c)]);
      if (c != before && c != output.width - 1) labels.push_back(c);
      before = c;
    }
    sums[labels] += probability;
  }
  return std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second; })->first;
}

TEST(BeamSearch, WithAWideBeamIsTheLikeliestOfAllLabels) {
  for (int64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> probabilities;
    for (int64_t t = 0; t < 5; ++t) {
      const double a = static_cast<double>((seed * 37 + t * 101) % 89 + 1),
                   b = static_cast<double>((seed * 53 + t * 29) % 97 + 1),
                   c = static_cast<double>((seed * 11 + t * 71) % 61 + 1), sum = a + b + c;
      probabilities.insert(probabilities.end(), {a / sum, b / sum, c / sum});
    }
    const Output output(5, 3, probabilities);
    EXPECT_EQ(beam_search(output.frames(), 1000), likeliest(output)) << seed;
  }
}

}  // namespace
}  // namespace tern::networks
