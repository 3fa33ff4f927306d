#include "tern/apps/reproduce/ridges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tern/trainer/report/chart.h"

namespace tern {
namespace {

using namespace trainer;

constexpr double kPanelWidth = 230, kGap = 26, kLeft = 64, kRight = 24;
constexpr double kTop = 78, kRowTop = 62, kRidge = 86, kSpread = 196, kRowBottom = 44;
constexpr double kRowHeight = kRowTop + kRidge + kSpread + kRowBottom;
constexpr std::array<int, 3> kFirst = {0xbf, 0xdb, 0xfe}, kLast = {0x1e, 0x3a, 0x8a};

constexpr const char* kStyle =
    "text { font: 12px Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; fill: #475569; }\n"
    ".heading { font-size: 20px; font-weight: 600; fill: #0f172a; }\n"
    ".row { font-size: 15px; font-weight: 600; fill: #0f172a; }\n"
    ".title { font-size: 13px; font-weight: 600; fill: #334155; }\n"
    ".axis { stroke: #94a3b8; }\n"
    ".ridge { stroke: white; stroke-width: 0.8; }\n";

/// From the first ridge's colour to the last one's.
std::string color(double place) {
  std::array<int, 3> mixed{};
  for (size_t i = 0; i < mixed.size(); ++i)
    mixed[i] = static_cast<int>((1 - place) * kFirst[i] + place * kLast[i] + 0.5);
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

std::string text(double x, double y, const char* anchor, const char* style, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, style,
                     words);
}

/// The steps of bins under a base line, each as wide as its bin.
std::string outline(const std::vector<double>& shares, double highest, double left, double base) {
  std::string points = fmt::format("{:.1f},{:.1f}", left, base);
  const double width = kPanelWidth / static_cast<double>(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    const double y = base - kRidge * std::sqrt(shares[i] / highest), x = left + width * static_cast<double>(i);
    points += fmt::format(" {:.1f},{:.2f} {:.1f},{:.2f}", x, y, x + width, y);
  }
  return points + fmt::format(" {:.1f},{:.1f}", left + kPanelWidth, base);
}

std::string draw_panel(const RidgePanel& panel, double left, double top, bool with_steps) {
  std::string svg = text(left, top + 42, "start", "title", panel.title);
  double highest = 1e-9;
  for (const auto& ridge : panel.ridges) highest = std::max(highest, std::ranges::max(ridge.shares));
  const double first = top + kRowTop + kRidge;
  const auto last = static_cast<double>(std::max<size_t>(panel.ridges.size(), 2) - 1);
  for (size_t i = 0; i < panel.ridges.size(); ++i) {
    const double place = static_cast<double>(i) / last, base = first + kSpread * place;
    svg += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.88\" class=\"ridge\"/>\n",
                       outline(panel.ridges[i].shares, highest, left, base), color(place));
    if (with_steps && (i % 5 == 0 || i + 1 == panel.ridges.size()))
      svg += text(left - 8, base + 4, "end", "", tick_label(static_cast<double>(panel.ridges[i].step)));
  }
  const double bottom = first + kSpread + 3;
  svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"axis\"/>\n", left,
                     left + kPanelWidth, bottom);
  for (const auto& [value, words] : panel.ticks) {
    const double x = left + kPanelWidth * (value - panel.low) / (panel.high - panel.low);
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"axis\"/>\n", x,
                       bottom, bottom + 5);
    svg += text(x, bottom + 19, "middle", "", words);
  }
  return svg;
}

}  // namespace

std::string draw_ridges(const std::string& heading, const std::string& subheading, const std::vector<RidgeRow>& rows) {
  size_t columns = 1;
  for (const RidgeRow& row : rows) columns = std::max(columns, row.panels.size());
  const double width = kLeft + static_cast<double>(columns) * (kPanelWidth + kGap) - kGap + kRight;
  const double height = kTop + static_cast<double>(rows.size()) * kRowHeight;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>\n{2}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height, kStyle);
  svg += text(kLeft, 34, "start", "heading", heading) + text(kLeft, 54, "start", "", subheading);
  for (size_t row = 0; row < rows.size(); ++row) {
    const double top = kTop + static_cast<double>(row) * kRowHeight;
    svg += text(kLeft, top + 18, "start", "row", rows[row].title);
    for (size_t i = 0; i < rows[row].panels.size(); ++i)
      svg += draw_panel(rows[row].panels[i], kLeft + static_cast<double>(i) * (kPanelWidth + kGap), top, i == 0);
  }
  return svg + "</svg>\n";
}

}  // namespace tern
