#include "tern/apps/reproduce/markdown.h"

#include <algorithm>

#include "tern/trainer/report/chart.h"

namespace tern {

using namespace trainer;

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max({widths[i], characters(row[i]), size_t{3}});
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      text += "| " + std::string(widths[i] - characters(row[i]), ' ') + row[i] + ' ';
    text += "|\n";
    if (&row != &rows.front()) continue;
    for (const size_t columns : widths) text += '|' + std::string(columns + 1, '-') + ':';
    text += "|\n";
  }
  return text;
}

}  // namespace tern
