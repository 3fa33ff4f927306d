#include "tern/data/mnist.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "tern/core/error.h"
#include "tern/data/byte_source.h"

namespace tern {
namespace {

constexpr size_t kFirstRead = 1 << 20;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string hexadecimal(uint32_t word) { return fmt::format("0x{:08x}", word); }

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;

/// Finds the file of `stem` ("train-images") and `kind` ("idx3-ubyte"); tries all spellings. Throws InputError if there
/// is none.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem, const std::string& kind) {
  std::string looked_for;
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const auto name = stem + joint + kind + ending;
      if (std::filesystem::is_regular_file(folder / name)) return folder / name;
      looked_for += (looked_for.empty() ? "" : ", ") + name;
    }
  }
  fail_input({"mnist: nothing in ", folder.string(), " is called ", looked_for});
}

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

  // Allocate as the data arrive: a small damaged file may declare a thousand times its size.
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

MemoryDataset load_mnist(const std::filesystem::path& folder, Split split) {
  check_input(std::filesystem::is_directory(folder), "mnist: ", folder.string(), " is not a folder");
  const std::string stem = split == Split::train ? "train" : "t10k";
  const auto images_path = find_file(folder, stem + "-images", "idx3-ubyte");
  const auto labels_path = find_file(folder, stem + "-labels", "idx1-ubyte");

  IdxArray images = read_idx(images_path, 3);
  check_input(images.extents[1] == kSide && images.extents[2] == kSide, images_path.string(), ": images of ",
              images.extents[1], "x", images.extents[2], " at offset 8, expected ", kSide, "x", kSide);
  IdxArray labels = read_idx(labels_path, 1);
  check_input(labels.extents[0] == images.extents[0], labels_path.string(), ": ", labels.extents[0],
              " labels at offset 4, but ", images_path.string(), " has ", images.extents[0], " images");
  const auto wrong = std::ranges::find_if(labels.values, [](uint8_t label) { return label >= kClasses; });
  if (wrong != labels.values.end()) {
    const auto index = wrong - labels.values.begin();
    fail_input({labels_path.string(), ": label ", *wrong, " of example ", index, " at offset ", 8 + index,
                ", expected 0 to ", kClasses - 1});
  }
  return {{.channels = 1, .height = kSide, .width = kSide, .classes = kClasses},
          std::move(images.values),
          std::move(labels.values)};
}

}  // namespace tern
