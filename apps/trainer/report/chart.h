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

/// One axis of a chart: the range it shows and where its labels stand. A value.
class Axis {
 public:
  /// Shows [low, high], widened a little where it is empty; a logarithmic axis needs low > 0.
  Axis(double low, double high, Scale scale);

  /// Where `value` lies between the ends: 0 at the low one, 1 at the high one; not clamped.
  double position(double value) const;
  /// About `count` values at round numbers (1, 2 or 5 times a power of ten) within the range.
  std::vector<double> ticks(int count) const;

 private:
  std::vector<double> linear_ticks(int count) const;
  std::vector<double> logarithmic_ticks(int count) const;

  double low_, high_;
  Scale scale_;
};

/// "0.05", "1,500", "20k": as short as `value` allows.
std::string tick_label(double value);

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

// What a series of a figure is drawn in; bounds and references are grey, what is counted beside them ink.

inline constexpr const char *kBlue = "#2563eb", *kOrange = "#ea580c", *kPaleOrange = "#fdba74", *kGreen = "#16a34a",
                            *kPaleGreen = "#86efac", *kPurple = "#9333ea", *kTeal = "#0d9488", *kGrey = "#94a3b8",
                            *kInk = "#0f172a";
/// For series that are told apart by their place alone.
inline constexpr const char* kPalette[] = {kBlue, kOrange, kGreen, kPurple, kTeal};

/// How many characters UTF-8 text has.
inline size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace tern::trainer
