#include "tern/data/image_list_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

constexpr const char* kBlank = " \t\r";

/// The beginning of `text`, which may be of a file that is no text.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 80;
  return "'" + escaped(text.substr(0, kMost)) + (text.size() > kMost ? "'..." : "'");
}

/// Of a line that is not blank; `where` is for errors.
ImageLine read_line(std::string_view text, int64_t number, const std::string& where) {
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  const size_t gap = text.find_last_of(kBlank);
  const std::string_view word = text.substr(gap == std::string_view::npos ? 0 : gap + 1);
  const std::string_view path =
      text.substr(0, gap == std::string_view::npos ? 0 : text.find_last_not_of(kBlank, gap) + 1);
  ImageLine line{.number = number, .path = std::string(path)};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), line.label);
  check_input(!path.empty() && error == std::errc() && end == word.data() + word.size() && line.label >= 0, where,
              ": line ", number, ": found ", shown(text), ", expected a path and a label from 0 on");
  return line;
}

}  // namespace

std::vector<ImageLine> read_image_lines(const std::filesystem::path& list) {
  std::ifstream file(list);
  check_input(file.is_open(), list.string(), ": cannot be read: ", std::strerror(errno));
  std::vector<ImageLine> lines;
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number)
    if (text.find_first_not_of(kBlank) != std::string::npos) lines.push_back(read_line(text, number, list.string()));
  check_input(!lines.empty(), list.string(), ": found no line, expected a path and a label in each");
  return lines;
}

int64_t count_image_classes(const std::filesystem::path& list) {
  const auto lines = read_image_lines(list);
  std::set<int64_t> labels;
  for (const ImageLine& line : lines) labels.insert(line.label);
  const auto count = std::ssize(labels);
  check_input(count > 1, list.string(), ": found one class, ", *labels.begin(), ", expected two or more");
  for (const ImageLine& line : lines)
    check_input(line.label < count, list.string(), ": line ", line.number, ": found label ", line.label,
                ", expected 0 to ", count - 1, " for the ", count, " different labels of the list");
  return count;
}

}  // namespace tern
