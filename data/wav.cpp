#include "tern/data/wav.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "tern/core/error.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

constexpr size_t kChunkHeader = 8;  ///< bytes of a chunk's name and size
constexpr size_t kFormat = 16;      ///< bytes of "fmt " that every PCM file has
constexpr uint32_t kPcm = 1, kExtensible = 0xfffe;
constexpr size_t kSubformat = 24;  ///< where "fmt " of an extensible file says that it holds PCM

/// Reads a RIFF file from first to last chunk. Its functions throw InputError if the bytes are wrong.
class WavReader {
 public:
  WavReader(std::span<const uint8_t> file, const std::string& name, int64_t rate)
      : file_(file), name_(name), rate_(rate) {}

  std::vector<int16_t> samples() {
    expect("RIFF", 0);
    expect("WAVE", kChunkHeader);
    std::optional<std::span<const uint8_t>> data;
    bool has_format = false;
    for (size_t at = kChunkHeader + 4; at < file_.size() && !data;) {
      need(at, kChunkHeader, "the header of a chunk");
      const size_t size = little_endian(at + 4, 4), begin = at + kChunkHeader;
      const std::string_view chunk = text(at);
      need(begin, size, join({"\"", escaped(chunk), "\""}));
      if (chunk == "fmt ") {
        check_format(begin, size);
        has_format = true;
      } else if (chunk == "data") {
        check_input(has_format, name_, ": \"data\" at byte ", at, " comes before \"fmt \", expected it after");
        check_input(size % 2 == 0, name_, ": \"data\" at byte ", at, " has ", size, " bytes, expected a multiple of 2");
        data = file_.subspan(begin, size);
      }
      at = begin + size + size % 2;
    }
    check_input(data.has_value(), name_, ": found no chunk \"", has_format ? "data" : "fmt ", "\" in ", file_.size(),
                " bytes, expected one");
    std::vector<int16_t> values(data->size() / 2);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int16_t>((*data)[2 * i] | (*data)[2 * i + 1] << 8);
    return values;
  }

 private:
  void check_format(size_t at, size_t size) const {
    check_input(size >= kFormat, name_, ": \"fmt \" at byte ", at, " has ", size, " bytes, expected ", kFormat,
                " or more");
    const bool extensible = little_endian(at, 2) == kExtensible && size >= kSubformat + 2;
    expect_number(extensible ? at + kSubformat : at, 2, kPcm, "format", "1 (PCM)");
    expect_number(at + 2, 2, 1, "channels", "1");
    expect_number(at + 4, 4, static_cast<uint32_t>(rate_), "samples per second", std::to_string(rate_));
    expect_number(at + 14, 2, 16, "bits in a sample", "16");
  }
  void expect_number(size_t at, size_t bytes, uint32_t number, const char* what, const std::string& expected) const {
    const uint32_t found = little_endian(at, bytes);
    check_input(found == number, name_, ": byte ", at, ": ", what, ": found ", found, ", expected ", expected);
  }
  void expect(std::string_view word, size_t at) const {
    const std::string_view found = text(at);
    check_input(found == word, name_, ": byte ", at, ": found \"", escaped(found), "\", expected \"", word, "\"");
  }
  void need(size_t at, size_t bytes, const std::string& what) const {
    check_input(bytes <= file_.size() - std::min(at, file_.size()), name_, ": truncated: ", what, " at byte ", at,
                " has ", bytes, " bytes, the file ends at ", file_.size());
  }
  /// Four characters, or fewer at the end of the file.
  std::string_view text(size_t at) const {
    const auto part = file_.subspan(std::min(at, file_.size()));
    return {reinterpret_cast<const char*>(part.data()), std::min<size_t>(part.size(), 4)};
  }
  uint32_t little_endian(size_t at, size_t bytes) const {
    uint32_t number = 0;
    for (size_t i = bytes; i-- > 0;) number = number << 8 | file_[at + i];
    return number;
  }

  std::span<const uint8_t> file_;
  const std::string& name_;
  int64_t rate_;
};

}  // namespace

std::vector<int16_t> parse_wav(std::span<const uint8_t> file, const std::string& name, int64_t rate) {
  return WavReader(file, name, rate).samples();
}

}  // namespace tern
