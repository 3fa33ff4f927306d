#include "tern/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "tern/core/error.h"
#include "tern/data/byte_source.h"

namespace tern {
namespace {

constexpr size_t kFirstRead = 1 << 20;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string hexadecimal(uint32_t word) { return fmt::format("0x{:08x}", word); }

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, int rank) {
  const std::string name = path.string();
  ByteSource source(path);
  std::vector<uint8_t> header(4 + 4 * static_cast<size_t>(rank));
  const size_t found = source.read(header);
  const uint32_t expected_magic = 0x800u + static_cast<uint32_t>(rank);
  if (found >= 4) {
    const uint32_t magic = big_endian(header.data());
    check_input(magic == expected_magic, name, ": magic number ", hexadecimal(magic), " at offset 0, expected ",
                hexadecimal(expected_magic), " (unsigned bytes, rank ", rank, ")");
  }
  check_input(found == header.size(), name, ": truncated: ", found, " bytes, the header alone has ", header.size());

  IdxArray array;
  uint64_t size = 1;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const uint64_t extent = big_endian(&header[4 + 4 * i]);
    check_input(extent > 0, name, ": extent ", i, " at offset ", 4 + 4 * i, " is 0, expected 1 or more");
    check_input(size <= source.most_bytes() / extent, name, ": extent ", i, " at offset ", 4 + 4 * i, " is ", extent,
                ", but the file can hold ", source.most_bytes(), " bytes at most");
    size *= extent;
    array.extents.push_back(static_cast<int64_t>(extent));
  }

  // Memory grows with what is really there: a small gzip file may declare a thousand times its size.
  for (size_t values = 0; values < size;) {
    array.values.resize(std::min<size_t>(size, std::max<size_t>(kFirstRead, 2 * values)));
    values += source.read(std::span(array.values).subspan(values));
    check_input(values == array.values.size(), name, ": truncated: data end at offset ", header.size() + values,
                ", the header declares ", header.size() + size, " bytes");
  }
  uint8_t extra;
  check_input(source.read({&extra, 1}) == 0, name, ": trailing bytes at offset ", header.size() + size,
              ", where the header says that the data end");
  return array;
}

}  // namespace tern
