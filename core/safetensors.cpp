#include "tern/core/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>

#include "tern/core/atomic_file.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/safetensors_header.h"

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

SafetensorsHeader lay_out(const StateDict& tensors, const Metadata& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  for (const auto& [name, tensor] : tensors) header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, 0});
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

/// Reads a file in order and sums what it read.
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

std::string read_header(Source& source) {
  check_input(source.size() >= kHeaderStart, source.file(), ": at byte 0: found ", source.size(),
              " bytes, expected the 8 of the header's length");
  uint64_t length = 0;
  source.read(std::as_writable_bytes(std::span(&length, 1)));
  check_input(length <= detail::kMaxHeaderBytes, source.file(), ": at byte 0: found a header of ", length,
              " bytes, expected at most ", detail::kMaxHeaderBytes);
  check_input(length <= source.remaining(), source.file(), ": at byte ", kHeaderStart, ": found ", source.remaining(),
              " bytes, expected a header of ", length);
  std::string text(length, '\0');
  source.read(std::as_writable_bytes(std::span(text)));
  return text;
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

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  Source source(path);
  const std::string text = read_header(source);
  SafetensorsHeader header = detail::parse_header(text, source.remaining(), source.file());

  std::vector<Tensor> tensors(header.entries.size());
  uint32_t checksum = checksum_of_header(text);
  for (const auto* entry : detail::in_data_order(header)) {
    const Tensor tensor = Tensor::empty(entry->shape, {.dtype = entry->dtype});
    source.read(bytes_of(tensor));
    checksum = crc32c(bytes_of(tensor), checksum);
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
