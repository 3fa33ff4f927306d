#include "tern/trainer/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace tern::trainer {
namespace {

/// The smallest step of 1, 2 or 5 times a power of ten that is not below `raw`.
double round_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * 0.999) return factor * power;
  return 10 * power;
}

constexpr double kPanelWidth = 460, kPanelHeight = 300;
constexpr double kLeft = 64, kRight = 24, kBottom = 56;
constexpr double kPanelTop = 58;      // from the last line of text to a panel: its title and a line of its legend
constexpr double kLegendLine = 18;    // the height of each further line of a legend
constexpr double kMarker = 3.5;       // the radius of a point
constexpr size_t kMostPoints = 1200;  // per line: more than the width of a panel in pixels

using Points = std::vector<Point>;

/// Keeps the lowest and the highest point of each group of neighbours, so that a long noisy line keeps its outline.
Points thin_out(const Points& points) {
  if (points.size() <= kMostPoints) return points;
  const size_t runs = kMostPoints / 2;
  Points kept;
  for (size_t run = 0; run < runs; ++run) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * run / runs);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (run + 1) / runs);
    auto [low, high] = std::minmax_element(begin, end, [](auto& a, auto& b) { return a.second < b.second; });
    if (low > high) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

constexpr std::pair<double, double> kNothing = {1, 10};  // the range if there are no points; valid for both scales

/// A line of the chart in its legend, `x` from the panel's left.
struct LegendEntry {
  const Series* series;
  double x;
  int line;
};
/// Starts another line if an entry would go beyond the panel.
std::vector<LegendEntry> legend_of(const Chart& chart) {
  std::vector<LegendEntry> entries;
  double x = 0;
  int line = 0;
  for (const Series& series : chart.series) {
    if (series.label.empty()) continue;
    const double width = 22 + 6.6 * static_cast<double>(characters(series.label));
    if (x > 0 && x + width > kPanelWidth) {
      x = 0;
      ++line;
    }
    entries.push_back({&series, x, line});
    x += width + 22;
  }
  return entries;
}
/// The height of the longest legend beyond its first line.
double more_legend_lines(std::span<const Chart> charts) {
  int last = 0;
  for (const Chart& chart : charts)
    for (const LegendEntry& entry : legend_of(chart)) last = std::max(last, entry.line);
  return kLegendLine * last;
}

/// Draws one chart with its panel's upper left corner at (left, top). `more_lines` is the height that all charts leave
/// for the further lines of a legend.
class Panel {
 public:
  Panel(const Chart& chart, int index, double left, double top, double more_lines)
      : chart_(chart),
        index_(index),
        left_(left),
        top_(top),
        legend_top_(top - more_lines),
        x_(make_x(chart)),
        y_(make_y(chart)) {}

  std::string draw() {
    text_ = fmt::format("<clipPath id=\"panel{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
                        index_, left_ - kMarker, top_ - kMarker, kPanelWidth + 2 * kMarker, kPanelHeight + 2 * kMarker);
    label(left_, legend_top_ - 34, with_scale(chart_.title, chart_.y_scale), "class=\"title\"");
    if (!extent(chart_.series)) {
      label(left_ + kPanelWidth / 2, top_ + kPanelHeight / 2, "no results yet", "text-anchor=\"middle\"");
      return text_;
    }
    draw_grid();
    text_ += fmt::format("<g clip-path=\"url(#panel{})\">\n", index_);
    for (const auto& series : chart_.series) draw_series(series);
    text_ += "</g>\n";
    draw_legend();
    return text_;
  }

 private:
  static Axis make_x(const Chart& chart) {
    const auto [low, high] = chart.x_range.value_or(extent(chart.series, &Point::first).value_or(kNothing));
    return {low, high, chart.x_scale};
  }
  static Axis make_y(const Chart& chart) {
    const auto [low, high] = chart.y_range.value_or(extent(chart.series).value_or(kNothing));
    return {low, high, chart.y_scale};
  }

  double pixel_x(double x) const { return left_ + x_.position(x) * kPanelWidth; }
  double pixel_y(double y) const { return top_ + (1 - y_.position(y)) * kPanelHeight; }

  static std::string with_scale(const std::string& name, Scale scale) {
    return scale == Scale::logarithmic ? name + " (log scale)" : name;
  }

  void label(double x, double y, const std::string& text, const char* attributes) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escape_markup(text));
  }

  void line(double x1, double y1, double x2, double y2, const char* name) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
                         y2, name);
  }

  void draw_grid() {
    const double right = left_ + kPanelWidth, bottom = top_ + kPanelHeight;
    for (const double tick : y_.ticks(5)) {
      line(left_, pixel_y(tick), right, pixel_y(tick), "grid");
      label(left_ - 10, pixel_y(tick) + 4, tick_label(tick) + chart_.y_suffix, "text-anchor=\"end\"");
    }
    for (const auto& [tick, text] : x_ticks()) {
      if (x_.position(tick) < -1e-9 || x_.position(tick) > 1 + 1e-9) continue;
      line(pixel_x(tick), bottom, pixel_x(tick), bottom + 5, "axis");
      label(pixel_x(tick), bottom + 20, text, "text-anchor=\"middle\"");
    }
    line(left_, bottom, right, bottom, "axis");
    label(right, bottom + 42, with_scale(chart_.x_label, chart_.x_scale), "text-anchor=\"end\"");
  }

  std::vector<std::pair<double, std::string>> x_ticks() const {
    if (!chart_.x_ticks.empty()) return chart_.x_ticks;
    std::vector<std::pair<double, std::string>> ticks;
    for (const double tick : x_.ticks(5)) ticks.emplace_back(tick, tick_label(tick));
    return ticks;
  }

  void draw_series(const Series& series) {
    const Points points = thin_out(series.points);
    text_ += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" stroke-linejoin=\"round\" "
        "points=\"",
        series.color, series.width, series.opacity);
    for (const auto& [x, y] : points) text_ += fmt::format("{:.1f},{:.1f} ", pixel_x(x), pixel_y(y));
    text_ += "\"/>\n";
    if (!series.markers) return;
    for (const auto& [x, y] : points)
      text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", pixel_x(x), pixel_y(y),
                           kMarker, series.color);
  }

  void draw_legend() {
    for (const auto& [series, x, line] : legend_of(chart_)) {
      const double y = legend_top_ + kLegendLine * line;
      text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"4\" rx=\"2\" fill=\"{}\" opacity=\"{}\"/>\n",
                           left_ + x, y - 19, series->color, series->opacity);
      label(left_ + x + 22, y - 13, series->label, "");
    }
  }

  const Chart& chart_;
  int index_;
  double left_, top_, legend_top_;
  Axis x_, y_;
  std::string text_;
};

}  // namespace

std::string escape_markup(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::vector<std::string> wrap(std::string_view text, size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (lines.empty() || characters(lines.back()) + 1 + characters(word) > most)
      lines.emplace_back(word);
    else
      (lines.back() += ' ') += word;
  }
  return lines;
}

std::string svg_image(double width, double height, const std::string& elements) {
  constexpr const char* kStyle =
      "text { font: 12px Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; fill: #475569; }\n"
      ".heading { font-size: 20px; font-weight: 600; fill: #0f172a; }\n"
      ".title { font-size: 14px; font-weight: 600; fill: #0f172a; }\n"
      ".fault { font-weight: 600; fill: #dc2626; }\n"
      ".grid { stroke: #e2e8f0; }\n"
      ".axis { stroke: #94a3b8; }\n";
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>\n{2}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, kStyle, elements);
}

Axis::Axis(double low, double high, Scale scale) : low_(low), high_(high), scale_(scale) {
  if (high_ > low_) return;
  low_ = scale == Scale::logarithmic ? low / 2 : low - 0.5;
  high_ = scale == Scale::logarithmic ? low * 2 : low + 0.5;
}

double Axis::position(double value) const {
  if (scale_ == Scale::linear) return (value - low_) / (high_ - low_);
  return std::log(std::max(value, low_ * 1e-6) / low_) / std::log(high_ / low_);
}

std::vector<double> Axis::ticks(int count) const {
  return scale_ == Scale::linear ? linear_ticks(count) : logarithmic_ticks(count);
}

std::vector<double> Axis::linear_ticks(int count) const {
  const double step = round_step((high_ - low_) / count);
  std::vector<double> found;
  for (double index = std::ceil(low_ / step - 1e-6); index * step <= high_ + step * 1e-6; ++index)
    found.push_back(index * step);
  return found;
}

std::vector<double> Axis::logarithmic_ticks(int count) const {
  std::vector<double> found;
  const std::vector<std::vector<double>> candidates = {{1, 1.5, 2, 3, 4, 5, 6, 8}, {1, 2, 5}, {1, 3}, {1}};
  for (const auto& factors : candidates) {
    found.clear();
    for (double power = std::pow(10.0, std::floor(std::log10(low_))); power <= high_; power *= 10)
      for (const double factor : factors)
        if (factor * power >= low_ * 0.999 && factor * power <= high_ * 1.001) found.push_back(factor * power);
    if (static_cast<int>(found.size()) <= count + 2) break;
  }
  return found.size() >= 3 ? found : linear_ticks(count);
}

std::string tick_label(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (magnitude >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  if (magnitude >= 1e3 && value == std::round(value))
    return fmt::format("{},{:03}", static_cast<int64_t>(value) / 1000, static_cast<int64_t>(magnitude) % 1000);
  return fmt::format("{:.4g}", magnitude < 1e-12 ? 0.0 : value);
}

std::optional<std::pair<double, double>> extent(std::span<const Series> lines, double Point::*coordinate) {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  for (const Series& line : lines)
    for (const Point& point : line.points) {
      low = std::min(low, point.*coordinate);
      high = std::max(high, point.*coordinate);
    }
  return low <= high ? std::optional(std::pair{low, high}) : std::nullopt;
}

std::string draw_charts(const std::string& heading, const std::string& subheading, std::span<const Chart> charts) {
  const double panel = kLeft + kPanelWidth + kRight, width = panel * static_cast<double>(charts.size());
  double y = 34;
  std::string text;
  const auto write = [&](const std::string& whole, double character_width, double line_height, const char* attributes) {
    for (const std::string& line : wrap(whole, static_cast<size_t>((width - kLeft - kRight) / character_width))) {
      text += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", kLeft, y, attributes, escape_markup(line));
      y += line_height;
    }
  };
  write(heading, 10.8, 24, " class=\"heading\"");
  y -= 4;  // a smaller font
  write(subheading, 6.2, 16, "");
  const double more_lines = more_legend_lines(charts), top = y + more_lines + kPanelTop;
  for (size_t i = 0; i < charts.size(); ++i)
    text += Panel(charts[i], static_cast<int>(i), panel * static_cast<double>(i) + kLeft, top, more_lines).draw();
  return svg_image(width, top + kPanelHeight + kBottom, text);
}

}  // namespace tern::trainer
