#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tern/apps/trainer/axis.h"

namespace tern {

using Point = std::pair<double, double>;  ///< x, y

/// A line of a chart; points in rising x.
struct Series {
  std::string label;  ///< empty: not in the legend
  std::string color;  ///< as SVG writes it: "#2563eb"
  std::vector<Point> points;
  double width = 2;      ///< of the line, pixels
  double opacity = 1;    ///< 0 to 1
  bool markers = false;  ///< a dot at every point
};

/// One panel: lines over common axes. Lines and labels that leave the range are clipped.
struct Chart {
  std::string title, x_label;
  std::vector<Series> series;
  Scale y_scale = Scale::linear;
  std::string y_suffix = {};                                 ///< after each label of the y axis: " %"
  std::vector<std::pair<double, std::string>> x_ticks = {};  ///< labels of the x axis; otherwise round numbers
  std::optional<std::pair<double, double>> x_range = {};     ///< otherwise what the lines need
  std::optional<std::pair<double, double>> y_range = {};
};

/// The lowest and the highest y, or x, of all points; nullopt where there are none.
std::optional<std::pair<double, double>> extent(std::span<const Series> lines,
                                                double Point::*coordinate = &Point::second);

/// An SVG image of the charts side by side under a heading and smaller text, in as many lines as it takes.
std::string draw_charts(const std::string& heading, const std::string& subheading, std::span<const Chart> charts);

}  // namespace tern
