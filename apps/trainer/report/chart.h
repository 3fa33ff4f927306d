#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::trainer {

enum class Scale { linear, logarithmic };

/// One axis of a chart: its range and the places of its labels. A value.
class Axis {
 public:
  /// Shows [low, high]; widens an empty range a little. A logarithmic axis needs low > 0.
  Axis(double low, double high, Scale scale);

  /// The relative place of `value`: 0 at the low end, 1 at the high end; not clamped.
  double position(double value) const;
  /// About `count` round values (1, 2 or 5 times a power of ten) in the range.
  std::vector<double> ticks(int count) const;

 private:
  std::vector<double> linear_ticks(int count) const;
  std::vector<double> logarithmic_ticks(int count) const;

  double low_, high_;
  Scale scale_;
};

/// "0.05", "1,500" or "20k": the shortest form for `value`.
std::string tick_label(double value);

using Point = std::pair<double, double>;  ///< x, y

/// A line of a chart; its points have increasing x.
struct Series {
  std::string label;  ///< empty: not in the legend
  std::string color;  ///< an SVG color: "#2563eb"
  std::vector<Point> points;
  double width = 2;      ///< line width in pixels
  double opacity = 1;    ///< 0 to 1
  bool markers = false;  ///< a dot at every point
};

/// One panel: lines in common axes. Lines outside the range are clipped, and x labels outside it are left out.
struct Chart {
  std::string title, x_label;
  std::vector<Series> series;
  Scale x_scale = Scale::linear, y_scale = Scale::linear;
  std::string y_suffix = {};                                 ///< suffix of each label of the y axis: " %"
  std::vector<std::pair<double, std::string>> x_ticks = {};  ///< labels of the x axis; otherwise round numbers
  std::optional<std::pair<double, double>> x_range = {};     ///< otherwise the range of the lines
  std::optional<std::pair<double, double>> y_range = {};
};

/// The smallest and the largest y, or x, of all points; nullopt if there are none.
std::optional<std::pair<double, double>> extent(std::span<const Series> lines,
                                                double Point::*coordinate = &Point::second);

/// Draws the charts side by side as an SVG image, with a heading and smaller text below it, both wrapped into lines. A
/// chart without points says that it has no results yet.
std::string draw_charts(const std::string& heading, const std::string& subheading, std::span<const Chart> charts);

// For other pictures.

/// The whole image with white ground and tern's text styles: .heading, .title, .fault, .grid and .axis.
std::string svg_image(double width, double height, const std::string& elements);
/// `text` with the characters of markup escaped.
std::string escape_markup(const std::string& text);
/// Breaks `text` at spaces into lines of at most `most` characters; a longer word gets a line of its own.
std::vector<std::string> wrap(std::string_view text, size_t most);

// Colors of the series of a figure. Bounds and references are grey; counted values beside them have the ink color.

inline constexpr const char *kBlue = "#2563eb", *kOrange = "#ea580c", *kPaleOrange = "#fdba74", *kGreen = "#16a34a",
                            *kPaleGreen = "#86efac", *kPurple = "#9333ea", *kTeal = "#0d9488", *kGrey = "#94a3b8",
                            *kInk = "#0f172a", *kRed = "#dc2626";
/// Colors for series without a meaning of their own.
inline constexpr const char* kPalette[] = {kBlue, kOrange, kGreen, kPurple, kTeal};

/// Number of characters of UTF-8 text.
inline size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace tern::trainer
