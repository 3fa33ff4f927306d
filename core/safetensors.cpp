#include "tern/core/safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tern/core/atomic_file.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern::detail {

/// Offset of the header in the file, in bytes. The 8 bytes before it hold the length of the header.
inline constexpr uint64_t kHeaderStart = 8;
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
/// In a header by tern, the metadata come first, and "crc32c" is their first entry. `kChecksumBlank` takes the place of
/// its digits until they are known.
inline constexpr std::string_view kChecksumName = "crc32c";
inline constexpr std::string_view kChecksumBlank = "00000000";
inline constexpr std::string_view kChecksumPrefix = R"({"__metadata__":{"crc32c":")";

/// The place of one tensor: bytes [begin, end), counted from the start of the data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool half = false;  ///< stored as F16, read as f32
};

/// The parsed header. The entries are in the order of the header and cover the data without gaps.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  Metadata metadata;
};

/// Returns the JSON text with a blank checksum, padded with spaces to a multiple of 8 bytes.
std::string format_header(const SafetensorsHeader& header);

/// Parses and checks the header `text`. `data_bytes` bytes follow it in `file`. Throws InputError that names `file`.
SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes, const std::string& file);

/// Returns the entries in the order of their data.
std::vector<const SafetensorsEntry*> in_data_order(const SafetensorsHeader& header);

namespace {

using Json = nlohmann::json;

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I64", DType::i64}, {"U8", DType::u8}};

constexpr std::string_view kHalf = "F16";

/// The value of an IEEE half.
float from_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), half >> 15 ? -1.0f : 1.0f);
  const uint32_t wide = exponent == 0x1f ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

std::string_view name_of(DType dtype) {
  return std::ranges::find(kDTypes, dtype, [](auto& d) { return d.second; })->first;
}

/// Collects the members of a header in the order of the text, each as a JSON value. The library's own types do not fit.
/// Its plain objects lose the order. Its ordered objects, and its parser with a callback, take time quadratic in the
/// number of members.
class HeaderMembers final : public nlohmann::json_sax<Json> {
 public:
  using Members = std::vector<std::pair<std::string, Json>>;
  /// Receives what is wrong and its position in the text. Does not return.
  using Fail = std::function<void(uint64_t position, const std::string& what)>;

  explicit HeaderMembers(Fail fail) : fail_(std::move(fail)) {}

  const Members& members() const { return members_; }
  /// The value of the text if it is not an object. The members of an object are in `members`.
  const Json& whole() const { return whole_; }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON text never holds binary values
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    const std::string_view what = error.what();
    const bool has_position = dynamic_cast<const Json::parse_error*>(&error) != nullptr;
    fail_(has_position ? position - 1 : 0, join({"is not JSON: ", what.substr(what.find("] ") + 2)}));
    return false;
  }

 private:
  struct Open {
    Json value;
    std::string key;  ///< name of the next member
  };

  bool open(Json empty) {
    // No valid header is nested deeper than 3. Fail before such a text takes memory.
    if (open_.size() == 3) fail_(0, "is nested deeper than 3, expected less");
    open_.push_back({std::move(empty), {}});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (open_.empty()) {
      whole_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else if (open_.size() == 1) {
      members_.emplace_back(std::move(parent.key), std::move(value));
    } else {
      parent.value[parent.key] = std::move(value);
    }
    return true;
  }

  Fail fail_;
  std::vector<Open> open_;
  Members members_;
  Json whole_;
};

/// Parses one header. Its errors name the byte offset of the part that is wrong.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, uint64_t data_bytes, const std::string& file)
      : text_(text), data_bytes_(data_bytes), file_(file) {}

  SafetensorsHeader read() const {
    HeaderMembers parsed([this](uint64_t position, const std::string& what) {
      fail_input({file_, ": at byte ", kHeaderStart + position, ": the header ", what});
    });
    Json::sax_parse(text_.begin(), text_.end(), &parsed);
    if (!parsed.whole().is_object()) fail_at(kHeaderStart, "the header", parsed.whole(), "an object");
    check_names(parsed.members());
    SafetensorsHeader header;
    for (const auto& [name, value] : parsed.members()) {
      if (name == "__metadata__")
        header.metadata = read_metadata(value);
      else
        header.entries.push_back(read_entry(name, value));
    }
    check_layout(header);
    return header;
  }

 private:
  void check_names(const HeaderMembers::Members& members) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : members) names.push_back(name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return;
    fail_input({file_, ": at byte ", offset_of(std::string(*twice)), ": '", *twice,
                "' is there twice, expected each name once"});
  }

  Metadata read_metadata(const Json& json) const {
    const auto fail = [&](const std::string& what, const Json& found, std::string_view expected) {
      fail_at(offset_of("__metadata__"), what, found, expected);
    };
    if (!json.is_object()) fail("__metadata__", json, "an object");
    Metadata metadata;
    for (const auto& [name, value] : json.items()) {
      if (!value.is_string()) fail("__metadata__ '" + name + "'", value, "a string");
      metadata[name] = value.get<std::string>();
    }
    return metadata;
  }

  SafetensorsEntry read_entry(const std::string& name, const Json& json) const {
    // `offset_of` searches the whole text, which is slow, so call it only after an error.
    const auto expect = [&](bool condition, const char* part, const Json& found, const auto&... expected) {
      if (!condition) fail_at(offset_of(name), join({"tensor '", name, "'", part}), found, join({expected...}));
    };
    expect(json.is_object(), "", json, "an object");
    const Json none;
    const auto field = [&](const char* key) -> const Json& {
      const auto found = json.find(key);
      return found == json.end() ? none : *found;
    };
    const Json &dtype = field("dtype"), &shape = field("shape"), &offsets = field("data_offsets");

    const std::string written = dtype.is_string() ? dtype.get<std::string>() : "";
    const bool half = written == kHalf;
    const auto* known =
        std::ranges::find(kDTypes, half ? "F32" : std::string_view(written), [](auto& d) { return d.first; });
    expect(known != std::end(kDTypes), ": dtype", dtype, "F32, F64, F16, BF16, I64 or U8");
    expect(is_list_of_counts(shape) && shape.size() <= size_t{Shape::kMaxRank}, ": shape", shape,
           join({"at most ", Shape::kMaxRank, " extents"}));
    expect(is_list_of_counts(offsets) && offsets.size() == 2, ": data_offsets", offsets, "begin and end");

    SafetensorsEntry entry{name, known->second, {}, offsets[0], offsets[1], half};
    expect(entry.begin <= entry.end && entry.end <= data_bytes_, ": data_offsets", offsets, "a range within the ",
           data_bytes_, " bytes of data in the file");
    const auto extents = shape.get<std::vector<uint64_t>>();
    uint64_t numel = 1;
    for (uint64_t extent : extents) {
      expect(extent <= static_cast<uint64_t>(Shape::kMostElements) / numel, ": shape", shape, "2^48 elements at most");
      numel *= std::max<uint64_t>(extent, 1);
    }
    entry.shape = Shape(std::vector<int64_t>(extents.begin(), extents.end()));
    const uint64_t bytes = static_cast<uint64_t>(entry.shape.numel()) * (half ? 2 : size_of(entry.dtype));
    expect(entry.end - entry.begin == bytes, ": data_offsets", offsets, bytes, " bytes for shape ", entry.shape, " of ",
           dtype.dump());
    return entry;
  }

  void check_layout(const SafetensorsHeader& header) const {
    uint64_t end = 0;
    for (const auto* entry : in_data_order(header)) {
      if (entry->begin != end)
        fail_input({file_, ": at byte ", offset_of(entry->name), ": tensor '", entry->name, "': its data begin at ",
                    entry->begin, ", expected ", end, ", the end of the data before it"});
      end = entry->end;
    }
    check_input(end == data_bytes_, file_, ": at byte ", kHeaderStart + text_.size() + end, ": ", data_bytes_ - end,
                " bytes follow the last tensor, expected none");
  }

  static bool is_list_of_counts(const Json& json) {
    return json.is_array() && std::ranges::all_of(json, [](const Json& item) { return item.is_number_unsigned(); });
  }

  [[noreturn]] void fail_at(uint64_t offset, std::string_view what, const Json& found,
                            std::string_view expected) const {
    const std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    fail_input({file_, ": at byte ", offset, ": ", what, ": found ", text.substr(0, 80), ", expected ", expected});
  }

  /// The offset of `name` in the file. The start of the header if the header writes the name with escapes.
  uint64_t offset_of(const std::string& name) const {
    const size_t found = text_.find('"' + name + '"');
    return kHeaderStart + (found == std::string_view::npos ? 0 : found);
  }

  std::string_view text_;
  uint64_t data_bytes_;
  const std::string& file_;
};

}  // namespace

std::string format_header(const SafetensorsHeader& header) {
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  // Writes member by member: a JSON object loses the order, and an ordered JSON object is slow for many members.
  std::string text = join({kChecksumPrefix, kChecksumBlank, '"'});
  for (const auto& [name, note] : header.metadata) text += join({',', dump(name), ':', dump(note)});
  text += '}';
  for (const auto& entry : header.entries) {
    const std::vector<int64_t> extents(entry.shape.begin(), entry.shape.end());
    text += join({',', dump(entry.name), R"(:{"dtype":")", name_of(entry.dtype), R"(","shape":)", dump(extents),
                  R"(,"data_offsets":[)", entry.begin, ',', entry.end, "]}"});
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes, const std::string& file) {
  return HeaderReader(text, data_bytes, file).read();
}

std::vector<const SafetensorsEntry*> in_data_order(const SafetensorsHeader& header) {
  std::vector<const SafetensorsEntry*> order;
  for (const auto& entry : header.entries) order.push_back(&entry);
  std::ranges::stable_sort(order, {}, [](auto* entry) { return std::tuple(entry->begin, entry->end); });
  return order;
}

}  // namespace tern::detail

namespace tern {
namespace {

using detail::kHeaderStart;
using detail::SafetensorsEntry;
using detail::SafetensorsHeader;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw_data()), tensor.bytes()};
}

/// Throws Error if no reader finds the tensor again under this name.
void check_writable(const std::string& name, const Tensor& tensor) {
  const auto check_tensor = [&](bool condition, std::string_view expected) {
    if (!condition) fail({"write_safetensors: tensor '", escaped(name), "', expected ", expected});
  };
  check_tensor(tensor.defined(), "one that is defined");
  check_tensor(name != "__metadata__", "another name: the format keeps this one");
  bool is_utf8 = true;
  try {
    nlohmann::json(name).dump();
  } catch (const nlohmann::json::type_error&) {
    is_utf8 = false;
  }
  check_tensor(is_utf8, "a name in UTF-8");
}

SafetensorsHeader lay_out(const StateDict& tensors, const Metadata& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  for (const auto& [name, tensor] : tensors) {
    check_writable(name, tensor);
    header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, 0});
  }
  std::vector<SafetensorsEntry*> order;
  for (auto& entry : header.entries) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater(), [](auto* entry) { return size_of(entry->dtype); });
  uint64_t end = 0;
  for (auto* entry : order) {
    entry->begin = end;
    end += static_cast<uint64_t>(entry->shape.numel()) * size_of(entry->dtype);
    entry->end = end;
  }
  return header;
}

/// Reads a file from start to end and tracks the byte offset for error messages.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : file_(path.string()) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    check_input(std::filesystem::exists(status), file_, ": not found, expected a safetensors file");
    check_input(std::filesystem::is_regular_file(status), file_, ": not a regular file, expected a safetensors file");
    size_ = std::filesystem::file_size(path, error);
    stream_.open(path, std::ios::binary);
    check_input(!error && stream_.is_open(), file_, ": cannot be read: ", std::strerror(errno));
  }

  void read(std::span<std::byte> bytes) {
    stream_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    check_input(stream_.gcount() == static_cast<std::streamsize>(bytes.size()), file_, ": at byte ", offset_,
                ": found ", stream_.gcount(), " bytes, expected ", bytes.size());
    offset_ += bytes.size();
  }

  const std::string& file() const { return file_; }
  uint64_t size() const { return size_; }
  uint64_t remaining() const { return size_ - offset_; }

 private:
  std::string file_;
  std::ifstream stream_;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

/// Throws InputError if `start`, the first bytes of the file, begins a file of torch.save: a zip archive, or a pickle.
void check_no_pickle(const std::string& file, std::string_view start) {
  const bool zip = start.starts_with("PK\3\4"), pickle = start.starts_with("\x80\2") && start.back() != '\0';
  if (!zip && !pickle) return;
  fail_input(
      {file, zip ? ": a zip archive" : ": a pickle",
       ", as torch.save writes it, expected a safetensors file. Convert it: python3 -c \"import sys, torch; from "
       "safetensors.torch import save_file; save_file({k: v.contiguous() for k, v in torch.load(sys.argv[1], "
       "map_location='cpu').items()}, sys.argv[2])\" ",
       file, " ", std::filesystem::path(file).replace_extension("safetensors").string()});
}

std::string read_header(Source& source) {
  check_input(source.size() >= kHeaderStart, source.file(), ": at byte 0: found ", source.size(),
              " bytes, expected the 8 of the header's length");
  uint64_t length = 0;
  source.read(std::as_writable_bytes(std::span(&length, 1)));
  check_no_pickle(source.file(), {reinterpret_cast<const char*>(&length), sizeof length});
  check_input(length <= detail::kMaxHeaderBytes, source.file(), ": at byte 0: found a header of ", length,
              " bytes, expected at most ", detail::kMaxHeaderBytes, "; is it a safetensors file?");
  check_input(length <= source.remaining(), source.file(), ": at byte ", kHeaderStart, ": found ", source.remaining(),
              " bytes, expected a header of ", length);
  std::string text(length, '\0');
  source.read(std::as_writable_bytes(std::span(text)));
  return text;
}

/// The tensor of `into` that the entry fits, or a new one.
Tensor place_for(const SafetensorsEntry& entry, const StateDict& into) {
  const Tensor* found = into.find(entry.name);
  const bool fits = found != nullptr && found->shape() == entry.shape && found->dtype() == entry.dtype &&
                    found->device() == Device{} && found->format() == MemoryFormat::row_major;
  if (!fits) return Tensor::empty(entry.shape, {.dtype = entry.dtype});
  found->mark_written();
  return *found;
}

uint32_t checksum_of_header(std::string text) {
  const uint64_t length = text.size();
  if (text.size() >= detail::kChecksumPrefix.size() + detail::kChecksumBlank.size())
    text.replace(detail::kChecksumPrefix.size(), detail::kChecksumBlank.size(), detail::kChecksumBlank);
  return crc32c(bytes_of(text), crc32c(std::as_bytes(std::span(&length, 1))));
}

}  // namespace

std::string write_safetensors(const std::filesystem::path& path, const StateDict& tensors, const Metadata& metadata) {
  check(!metadata.contains(std::string(detail::kChecksumName)), "write_safetensors: the metadata hold '",
        detail::kChecksumName, "', expected that to be left to the file");
  const SafetensorsHeader header = lay_out(tensors, metadata);
  const std::string text = detail::format_header(header);
  const uint64_t length = text.size();
  check(length <= detail::kMaxHeaderBytes, "write_safetensors: ", path.string(), ": a header of ", length,
        " bytes, expected at most ", detail::kMaxHeaderBytes);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(bytes_of(text));
  uint32_t checksum = checksum_of_header(text);
  for (const auto* entry : detail::in_data_order(header)) {
    const Tensor plain = tensors.at(entry->name).to(Device{}).to(MemoryFormat::row_major);
    file.write(bytes_of(plain));
    checksum = crc32c(bytes_of(plain), checksum);
  }
  const std::string digits = fmt::format("{:08x}", checksum);
  file.rewrite(kHeaderStart + detail::kChecksumPrefix.size(), bytes_of(digits));
  file.commit();
  return digits;
}

Metadata read_safetensors_metadata(const std::filesystem::path& path) {
  Source source(path);
  const std::string text = read_header(source);
  Metadata metadata = detail::parse_header(text, source.remaining(), source.file()).metadata;
  metadata.erase(std::string(detail::kChecksumName));
  return metadata;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path, const StateDict& into) {
  Source source(path);
  const std::string text = read_header(source);
  SafetensorsHeader header = detail::parse_header(text, source.remaining(), source.file());

  std::vector<Tensor> tensors(header.entries.size());
  uint32_t checksum = checksum_of_header(text);
  for (const auto* entry : detail::in_data_order(header)) {
    const Tensor tensor = place_for(*entry, into);
    std::vector<uint16_t> halves(entry->half ? static_cast<size_t>(tensor.numel()) : 0);
    const std::span<std::byte> bytes = entry->half ? std::as_writable_bytes(std::span(halves)) : bytes_of(tensor);
    source.read(bytes);
    checksum = crc32c(bytes, checksum);
    if (entry->half) std::ranges::transform(halves, tensor.data<float>(), detail::from_half);
    tensors[static_cast<size_t>(entry - header.entries.data())] = tensor;
  }

  SafetensorsFile file;
  const auto stated = header.metadata.extract(std::string(detail::kChecksumName));
  if (!stated.empty() && text.starts_with(detail::kChecksumPrefix)) {
    const std::string found = fmt::format("{:08x}", checksum);
    check_input(found == stated.mapped(), source.file(), ": the file's contents do not match its checksum: found ",
                found, ", expected ", stated.mapped());
    file.checksum = found;
  }
  for (size_t i = 0; i < tensors.size(); ++i) file.tensors.add(std::move(header.entries[i].name), tensors[i]);
  file.metadata = std::move(header.metadata);
  return file;
}

}  // namespace tern
