#include "tern/apps/reproduce/engine/text.h"

#include <algorithm>
#include <span>

#include "tern/core/atomic_file.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

std::string quoted(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') text += "'\\'";
    text += c;
  }
  return text + '\'';
}

}  // namespace

void write_text(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    line += quoted(word);
  }
  return line;
}

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

}  // namespace tern::reproduce
