#include "tern/data/idx.h"

#include <fmt/ranges.h>

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
  const auto source = open_source(path);
  std::vector<uint8_t> header(4 + 4 * static_cast<size_t>(rank));
  const size_t found = source->read(header);
  const uint32_t expected_magic = 0x800u + static_cast<uint32_t>(rank);
  if (found >= 4) {
    const uint32_t magic = big_endian(header.data());
    check_input(magic == expected_magic, name, ": magic number ", hexadecimal(magic), " at offset 0, expected ",
                hexadecimal(expected_magic), " (unsigned bytes, rank ", rank, ")");
  }
  check_input(found == header.size(), name, ": truncated: ", found, " bytes, the header alone has ", header.size());

  IdxArray array;
  for (size_t at = 4; at < header.size(); at += 4) {
    array.extents.push_back(big_endian(&header[at]));
    check_input(array.extents.back() > 0, name, ": an extent of 0 at offset ", at, ", expected 1 or more");
  }
  const std::string declared = fmt::format("{}", fmt::join(array.extents, "x"));
  const uint64_t room = source->most_bytes() - header.size();
  uint64_t size = 1;
  for (const int64_t extent : array.extents) {
    check_input(size <= room / static_cast<uint64_t>(extent), name, ": truncated: the header declares ", declared,
                " bytes at offset 4, the file has room for ", room);
    size *= static_cast<uint64_t>(extent);
  }

  // Memory grows with what is really there: a small gzip file may declare a thousand times its size.
  for (size_t values = 0; values < size;) {
    array.values.resize(std::min<size_t>(size, std::max<size_t>(kFirstRead, 2 * values)));
    values += source->read(std::span(array.values).subspan(values));
    check_input(values == array.values.size(), name, ": truncated: data end at offset ", header.size() + values,
                ", the header declares ", header.size() + size, " bytes");
  }
  uint8_t extra;
  check_input(source->read({&extra, 1}) == 0, name, ": trailing bytes at offset ", header.size() + size,
              ", where the header says that the data end");
  return array;
}

}  // namespace tern
