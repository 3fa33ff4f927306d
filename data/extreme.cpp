#include "tern/data/extreme.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

constexpr int64_t kMostExtremeCount = std::numeric_limits<int32_t>::max();

/// The lines of a stream, one after another, without their ends.
class LinesOf {
 public:
  explicit LinesOf(ByteSource& source) : source_(source), part_(1 << 16) {}

  /// False at the end of the stream. `line` is good until the next call.
  bool next(std::string_view& line) {
    line_.clear();
    while (true) {
      const uint8_t* const from = part_.data() + at_;
      const uint8_t* const end = std::find<const uint8_t*>(from, part_.data() + filled_, '\n');
      line_.append(from, end);
      at_ = static_cast<size_t>(end - part_.data());
      if (at_ < filled_) break;
      at_ = 0;
      filled_ = source_.read(part_);
      if (filled_ == 0 && line_.empty()) return false;
      if (filled_ == 0) break;
    }
    at_ = std::min(at_ + 1, filled_);
    ++number_;
    line = line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
  int64_t number() const { return number_; }

 private:
  ByteSource& source_;
  std::vector<uint8_t> part_;
  size_t at_ = 0, filled_ = 0;
  std::string line_;
  int64_t number_ = 0;
};

/// Parses one line from left to right. Errors name the file and the line.
class LineOfNumbers {
 public:
  LineOfNumbers(const ByteSource& source, int64_t number, std::string_view line)
      : source_(source), number_(number), rest_(line) {}

  bool at_end() const { return rest_.empty(); }
  bool take(char character) {
    if (!rest_.starts_with(character)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  /// The next number, which `good` accepts and one of the characters of `after` follows, or the end of the line. The
  /// text of `expected()` is for errors; making it for each number would take more time than reading.
  template <class Number, class Good, class Expected>
  Number number(const Good& good, std::string_view after, const Expected& expected) {
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    const auto length = static_cast<size_t>(end - rest_.data());
    const bool ends = length == rest_.size() || after.find(rest_[length]) != std::string_view::npos;
    if (error != std::errc() || !ends || !good(value)) refuse(expected());
    rest_.remove_prefix(length);
    return value;
  }
  /// The next whole number from 0 to count - 1.
  int64_t below(int64_t count, std::string_view after, const char* what) {
    return number<int64_t>([&](int64_t value) { return 0 <= value && value < count; }, after,
                           [&] {
                             return join({what, " from 0 to ", count - 1});
                           });
  }
  [[noreturn]] void refuse(const MessagePart& expected) const {
    constexpr size_t kMost = 20;
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    fail_input({source_.name(), ": line ", number_, ": found ",
                rest_.empty() ? "its end" : "'" + escaped(word.substr(0, kMost)) + "'", ", expected ", expected});
  }

 private:
  const ByteSource& source_;
  int64_t number_;
  std::string_view rest_;
};

Tensor as_indices(std::span<const int32_t> numbers) {
  Tensor tensor = Tensor::empty({std::ssize(numbers)}, {.dtype = DType::i64});
  std::ranges::copy(numbers, tensor.data<int64_t>());
  return tensor;
}

}  // namespace

ExtremeFile::ExtremeFile(ByteSource& source) : name_(source.name()) {
  LinesOf lines(source);
  std::string_view text;
  lines.next(text);
  LineOfNumbers header(source, 1, text);
  const auto count = [&](const char* what) {
    header.skip_spaces();
    return header.number<int64_t>([](int64_t value) { return 1 <= value && value <= kMostExtremeCount; }, " ",
                                  [&] {
                                    return join({"the number of ", what, ", 1 to ", kMostExtremeCount});
                                  });
  };
  const int64_t samples = count("samples");
  columns_ = count("features");
  labels_in_all_ = count("labels");
  header.skip_spaces();
  if (!header.at_end()) header.refuse("the end of the line after samples, features and labels");

  rows_.emplace_back();
  while (lines.next(text)) {
    LineOfNumbers line(source, lines.number(), text);
    if (size() == samples) {
      line.skip_spaces();
      if (line.at_end()) continue;  // empty lines at the end
      line.refuse(
          join({"the end of the file, because line 1 declares ", samples, samples == 1 ? " sample" : " samples"}));
    }
    if (!line.at_end() && !line.take(' ')) {
      do labels_.push_back(static_cast<int32_t>(line.below(labels_in_all_, ", ", "a label")));
      while (line.take(','));
      const auto own = labels_.begin() + static_cast<std::ptrdiff_t>(rows_.back().label);
      std::sort(own, labels_.end());
      labels_.erase(std::unique(own, labels_.end()), labels_.end());
    }
    for (line.skip_spaces(); !line.at_end(); line.skip_spaces()) {
      features_.push_back(static_cast<int32_t>(line.below(columns_, ":", "FEATURE:VALUE with a feature")));
      if (!line.take(':')) line.refuse("':' and a value after the feature");
      constexpr double kMost = std::numeric_limits<float>::max();
      values_.push_back(
          static_cast<float>(line.number<double>([](double value) { return std::abs(value) <= kMost; }, " ",
                                                 [] { return "a finite value of 32 bits after ':'"; })));
    }
    rows_.push_back({.element = features_.size(), .label = labels_.size()});
  }
  check_input(size() == samples, name_, ": line ", lines.number(), ": found the end of the file after ", size(),
              " samples, expected the ", samples, " that line 1 declares");
}

std::vector<Field> ExtremeFile::fields() const {
  return {{.name = "features", .shape = {columns_}, .kind = FieldKind::sparse},
          {.name = "labels", .shape = {labels_in_all_}, .kind = FieldKind::sparse}};
}

Sample ExtremeFile::sample(int64_t index) const {
  check(0 <= index && index < size(), name_, ": sample ", index, " of ", size());
  const Row first = rows_[static_cast<size_t>(index)], last = rows_[static_cast<size_t>(index) + 1];
  const size_t elements = last.element - first.element, labels = last.label - first.label;
  return {{"features", as_indices(std::span(features_).subspan(first.element, elements))},
          {"features.values",
           Tensor::from<float>({static_cast<int64_t>(elements)}, std::span(values_).subspan(first.element, elements))},
          {"labels", as_indices(std::span(labels_).subspan(first.label, labels))}};
}

std::filesystem::path find_extreme_file(const std::filesystem::path& folder, Split split) {
  check_input(std::filesystem::is_directory(folder), "extreme-file: ", folder.string(), " is not a folder");
  const std::string ending = split == Split::train ? "train.txt" : "test.txt";
  return find_one_file(
      folder, {ending, ending + ".gz", ending + ".xz"}, join({"extreme-file: ", folder.string(), " has "}),
      join({" files whose names end in ", ending, ", ", ending, ".gz or ", ending, ".xz, expected one"}));
}

}  // namespace tern
