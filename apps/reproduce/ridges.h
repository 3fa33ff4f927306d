#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tern {

/// Histograms of one quantity in the course of training, drawn one before the other: the latest in front, lowest. Bars
/// are as high as the square roots of their shares (Tukey's rootogram), so that tails can be seen beside a peak.
struct RidgePanel {
  struct Ridge {
    int64_t step;
    std::vector<double> shares;  ///< of equal bins from `low` to `high`
  };
  std::string title;
  std::vector<Ridge> ridges;  ///< in rising order of steps
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> ticks = {};  ///< labels of the x axis
};

/// Panels side by side, each scaled to its own highest bin.
struct RidgeRow {
  std::string title;
  std::vector<RidgePanel> panels;
};

/// An SVG image of the rows, one below the other, under a heading and a smaller line of text.
std::string draw_ridges(const std::string& heading, const std::string& subheading, const std::vector<RidgeRow>& rows);

}  // namespace tern
