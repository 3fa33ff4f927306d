#include "tern/data/npy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

static_assert(std::endian::native == std::endian::little, "the elements of npy files are little-endian");

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kNpyVersionEnd = kNpyMagic.size() + 2;
/// NumPy's `load` has the same limit.
constexpr uint64_t kMostNpyHeaderBytes = 10'000;

constexpr std::pair<std::string_view, DType> kNpyDTypes[] = {
    {"|u1", DType::u8}, {"<i8", DType::i64}, {"<f4", DType::f32}, {"<f8", DType::f64}};
constexpr const char* kNpyDTypeNames = "'|u1', '<i8', '<f4' or '<f8'";

/// Parses the text of a header: a dictionary in Python's notation, such as "{'descr': '<f4', 'fortran_order': False,
/// 'shape': (3, 4), }", then spaces. Its functions throw InputError if the text is wrong.
class NpyHeader {
 public:
  /// `start`: the offset of `text` in the file, for messages.
  NpyHeader(const std::string& name, std::string_view text, size_t start) : name_(name), text_(text), start_(start) {
    expect('{');
    while (!take('}')) {
      entry();
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_spaces();
    if (at_ < text_.size()) refuse("spaces");
    check_input(dtype_ && in_order_ && extents_, name_, ": the header lacks ",
                !dtype_      ? "'descr'"
                : !in_order_ ? "'fortran_order'"
                             : "'shape'",
                ", expected 'descr', 'fortran_order' and 'shape'");
  }

  DType dtype() const { return *dtype_; }
  const std::vector<int64_t>& extents() const { return *extents_; }

 private:
  void entry() {
    const size_t start = at_;
    const std::string_view key = quoted("a key");
    expect(':');
    if (key == "descr") {
      read_dtype();
    } else if (key == "fortran_order") {
      read_order();
    } else if (key == "shape") {
      read_shape();
    } else {
      at_ = start;
      refuse("'descr', 'fortran_order' or 'shape'");
    }
  }

  void read_dtype() {
    skip_spaces();
    const size_t offset = start_ + at_;
    const std::string_view descr = quoted(kNpyDTypeNames);
    const auto* const known = std::ranges::find(kNpyDTypes, descr, [](const auto& pair) { return pair.first; });
    const char* meaning = descr == "|O" ? " (Python objects)" : descr.starts_with('>') ? " (big-endian)" : "";
    check_input(known != std::end(kNpyDTypes), name_, ": offset ", offset, ": elements are '", escaped(descr), "'",
                meaning, ", expected ", kNpyDTypeNames);
    dtype_ = known->second;
  }

  void read_order() {
    skip_spaces();
    check_input(!rest().starts_with("True"), name_, ": offset ", start_ + at_,
                ": the elements are in Fortran order, expected C order");
    if (!rest().starts_with("False")) refuse("True or False");
    at_ += std::string_view("False").size();
    in_order_ = true;
  }

  void read_shape() {
    extents_.emplace();
    expect('(');
    while (!take(')')) {
      extents_->push_back(extent());
      if (take(',')) continue;
      expect(')');
      break;
    }
  }

  int64_t extent() {
    skip_spaces();
    int64_t value = -1;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0 || value > Shape::kMostElements) refuse("an extent from 0 to 2^48");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::string_view quoted(const char* what) {
    skip_spaces();
    const char quote = rest().empty() ? ' ' : rest().front();
    if (quote != '\'' && quote != '"') refuse(what);
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("text that ends with its quote");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }
  std::string_view rest() const { return text_.substr(at_); }
  bool take(char character) {
    skip_spaces();
    if (!rest().starts_with(character)) return false;
    ++at_;
    return true;
  }
  void expect(char character) {
    if (!take(character)) refuse({'\'', character, '\''});
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    constexpr size_t kShown = 20;
    const std::string found = rest().empty() ? "its end" : "\"" + escaped(rest().substr(0, kShown)) + "\"";
    fail_input({name_, ": the header has ", found, " at offset ", start_ + at_, ", expected ", expected});
  }

  const std::string& name_;
  std::string_view text_;
  size_t start_;
  size_t at_ = 0;
  std::optional<DType> dtype_;
  std::optional<bool> in_order_;
  std::optional<std::vector<int64_t>> extents_;
};

/// Reads up to `size` bytes, fewer only at the end of the file.
std::string read_text(ByteSource& source, size_t size) {
  std::string text(size, '\0');
  text.resize(source.read({reinterpret_cast<uint8_t*>(text.data()), size}));
  return text;
}

/// Number of elements. Refuses an empty array too if its other extents have a product that is too large for Shape.
uint64_t count_elements(const std::vector<int64_t>& extents, const std::string& name) {
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    check_input(extent <= Shape::kMostElements / elements, name, ": shape ",
                fmt::format("[{}]", fmt::join(extents, ", ")), " has more than 2^48 elements, expected at most that");
    elements *= std::max<int64_t>(extent, 1);
  }
  return std::ranges::count(extents, 0) > 0 ? 0 : static_cast<uint64_t>(elements);
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) { return read_npy(*open_source(path)); }

Tensor read_npy(ByteSource& source) {
  const std::string& name = source.name();
  const std::string start = read_text(source, kNpyVersionEnd);
  check_input(start.starts_with(kNpyMagic), name, ": begins with \"", escaped(start.substr(0, kNpyMagic.size())),
              "\", expected \"", escaped(kNpyMagic), "\"");
  check_input(start.size() == kNpyVersionEnd, name, ": truncated: ", start.size(), " bytes, the version alone ends at ",
              kNpyVersionEnd);
  const int major = static_cast<uint8_t>(start[kNpyMagic.size()]), minor = static_cast<uint8_t>(start.back());
  check_input(1 <= major && major <= 3 && minor == 0, name, ": offset ", kNpyMagic.size(), ": version ", major, ".",
              minor, ", expected 1.0, 2.0 or 3.0");

  const size_t header_start = kNpyVersionEnd + (major == 1 ? 2 : 4);
  uint64_t header_bytes = 0;
  const std::string length = read_text(source, header_start - kNpyVersionEnd);
  check_input(length.size() == header_start - kNpyVersionEnd, name, ": truncated: ", start.size() + length.size(),
              " bytes, the header begins at ", header_start);
  for (size_t i = length.size(); i-- > 0;) header_bytes = header_bytes << 8 | static_cast<uint8_t>(length[i]);
  check_input(header_bytes <= kMostNpyHeaderBytes, name, ": a header of ", header_bytes, " bytes, expected at most ",
              kMostNpyHeaderBytes);
  const std::string text = read_text(source, header_bytes);
  check_input(text.size() == header_bytes, name, ": truncated: a header of ", header_bytes, " bytes, the file has ",
              text.size(), " of them");
  check_input(text.ends_with('\n'), name, ": the header does not end with a newline, expected one");

  const NpyHeader header(name, std::string_view(text).substr(0, text.size() - 1), header_start);
  check_input(!header.extents().empty() && header.extents().size() <= Shape::kMaxRank, name, ": ",
              header.extents().size(), " dimensions, expected 1 to ", Shape::kMaxRank);
  const uint64_t expected = count_elements(header.extents(), name) * size_of(header.dtype());
  const Shape shape(header.extents());
  const auto refuse = [&](const char* bound, uint64_t found) {
    fail_input({name, ": ", bound, found, " bytes follow the header, expected ", expected, " for ", shape, " of ",
                header.dtype()});
  };
  const uint64_t most = source.most_bytes() - std::min(source.most_bytes(), header_start + header_bytes);
  if (expected > most) refuse("at most ", most);
  const Tensor tensor = Tensor::empty(shape, {.dtype = header.dtype()});
  const size_t found = source.read({static_cast<uint8_t*>(tensor.raw_data()), tensor.bytes()});
  if (found < expected) refuse("", found);
  if (uint8_t more = 0; source.read({&more, 1}) > 0) refuse("more than ", found);
  return tensor;
}

}  // namespace tern
