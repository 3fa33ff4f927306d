#include "tern/apps/reproduce/markdown.h"

#include <algorithm>

namespace tern {
namespace {

/// Characters of UTF-8.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max({widths[i], width(row[i]), size_t{3}});
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) text += "| " + std::string(widths[i] - width(row[i]), ' ') + row[i] + ' ';
    text += "|\n";
    if (&row != &rows.front()) continue;
    for (const size_t columns : widths) text += '|' + std::string(columns + 1, '-') + ':';
    text += "|\n";
  }
  return text;
}

}  // namespace tern
