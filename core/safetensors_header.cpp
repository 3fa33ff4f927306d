#include "tern/core/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tern/core/error.h"

namespace tern::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"BF16", DType::bf16}, {"I64", DType::i64}, {"U8", DType::u8}};

std::string_view name_of(DType dtype) {
  return std::ranges::find(kDTypes, dtype, [](auto& d) { return d.second; })->first;
}

/// Reads the parts of one header and names the place where one is wrong.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, uint64_t data_bytes, const std::string& file)
      : text_(text), data_bytes_(data_bytes), file_(file) {}

  SafetensorsHeader read() const {
    const Json json = parse();
    expect(json.is_object(), kHeaderStart, "the header", json, "an object");
    SafetensorsHeader header;
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__")
        header.metadata = read_metadata(value);
      else
        header.entries.push_back(read_entry(name, value));
    }
    check_layout(header);
    return header;
  }

 private:
  Json parse() const {
    // Deeper than any header goes: an error before memory is spent on it.
    const auto limit_depth = [&](int depth, auto, auto&) {
      check_input(depth <= 3, file_, ": at byte ", kHeaderStart, ": the header is nested deeper than 3, expected less");
      return true;
    };
    try {
      return Json::parse(text_.begin(), text_.end(), limit_depth);
    } catch (const Json::parse_error& error) {
      fail_json(error.byte - 1, error.what());
    } catch (const Json::out_of_range& error) {  // a number too large, at no stated place
      fail_json(0, error.what());
    }
  }

  [[noreturn]] void fail_json(uint64_t position, std::string_view what) const {
    fail_input(
        {file_, ": at byte ", kHeaderStart + position, ": the header is not JSON: ", what.substr(what.find("] ") + 2)});
  }

  Metadata read_metadata(const Json& json) const {
    const uint64_t offset = offset_of("__metadata__");
    expect(json.is_object(), offset, "__metadata__", json, "an object");
    Metadata metadata;
    for (const auto& [name, value] : json.items()) {
      expect(value.is_string(), offset, "__metadata__ '" + name + "'", value, "a string");
      metadata[name] = value.get<std::string>();
    }
    return metadata;
  }

  SafetensorsEntry read_entry(const std::string& name, const Json& json) const {
    const uint64_t offset = offset_of(name);
    const std::string what = "tensor '" + name + "'";
    expect(json.is_object(), offset, what, json, "an object");
    const Json dtype = json.value("dtype", Json()), shape = json.value("shape", Json());
    const Json offsets = json.value("data_offsets", Json());

    const auto* known = dtype.is_string() ? std::ranges::find(kDTypes, dtype.get_ref<const std::string&>(),
                                                              [](auto& d) { return d.first; })
                                          : std::end(kDTypes);
    expect(known != std::end(kDTypes), offset, what + ": dtype", dtype, "F32, F64, BF16, I64 or U8");
    expect(is_list_of_counts(shape) && shape.size() <= size_t{Shape::kMaxRank}, offset, what + ": shape", shape,
           "at most 6 extents");
    expect(is_list_of_counts(offsets) && offsets.size() == 2, offset, what + ": data_offsets", offsets,
           "begin and end");

    SafetensorsEntry entry{name, known->second, {}, offsets[0], offsets[1]};
    expect(entry.begin <= entry.end && entry.end <= data_bytes_, offset, what + ": data_offsets", offsets,
           "a range within the " + std::to_string(data_bytes_) + " bytes of data in the file");
    const auto extents = shape.get<std::vector<uint64_t>>();
    uint64_t numel = 1;
    for (uint64_t extent : extents) {
      // Also keeps the product of the other extents of an empty tensor from overflowing.
      expect(extent == 0 || numel <= kMaxElements / extent, offset, what + ": shape", shape, "fewer elements");
      numel *= std::max<uint64_t>(extent, 1);
    }
    entry.shape = Shape(std::vector<int64_t>(extents.begin(), extents.end()));
    const uint64_t bytes = static_cast<uint64_t>(entry.shape.numel()) * size_of(entry.dtype);
    expect(entry.end - entry.begin == bytes, offset, what + ": data_offsets", offsets,
           std::to_string(bytes) + " bytes for shape " + to_string(entry.shape) + " of " + dtype.dump());
    return entry;
  }

  void check_layout(const SafetensorsHeader& header) const {
    uint64_t end = 0;
    for (const auto* entry : in_data_order(header)) {
      check_input(entry->begin == end, file_, ": at byte ", offset_of(entry->name), ": tensor '", entry->name,
                  "': its data begin at ", entry->begin, ", expected ", end, ", where those before them end");
      end = entry->end;
    }
    check_input(end == data_bytes_, file_, ": at byte ", kHeaderStart + text_.size() + end, ": ", data_bytes_ - end,
                " bytes follow the last tensor, expected none");
  }

  static bool is_list_of_counts(const Json& json) {
    return json.is_array() && std::ranges::all_of(json, [](const Json& item) { return item.is_number_unsigned(); });
  }

  void expect(bool condition, uint64_t offset, std::string_view what, const Json& found,
              std::string_view expected) const {
    if (condition) return;
    const std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    fail_input({file_, ": at byte ", offset, ": ", what, ": found ", text.substr(0, 80), ", expected ", expected});
  }

  /// Where `name` stands in the file; the header's start where it is written with escapes.
  uint64_t offset_of(const std::string& name) const {
    const size_t found = text_.find('"' + name + '"');
    return kHeaderStart + (found == std::string_view::npos ? 0 : found);
  }

  static constexpr uint64_t kMaxElements = uint64_t{1} << 60;

  std::string_view text_;
  uint64_t data_bytes_;
  const std::string& file_;
};

}  // namespace

std::string format_header(const SafetensorsHeader& header) {
  Json json;
  json["__metadata__"][std::string(kChecksumName)] = kChecksumBlank;
  for (const auto& [name, text] : header.metadata) json["__metadata__"][name] = text;
  for (const auto& entry : header.entries) {
    json[entry.name] = {{"dtype", name_of(entry.dtype)},
                        {"shape", std::vector<int64_t>(entry.shape.begin(), entry.shape.end())},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
