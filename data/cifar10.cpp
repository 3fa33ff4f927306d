#include "tern/data/cifar10.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/data/tar.h"

namespace tern {
namespace {

constexpr size_t kBatch = 10000;  // examples per file
constexpr size_t kPlane = 32 * 32, kExample = 3 * kPlane, kRecord = 1 + kExample;
constexpr const char* kOwnFolder = "cifar-10-batches-bin";
constexpr const char* kArchive = "cifar-10-binary.tar.gz";

/// The file names of a split, and memory for their examples in the same order.
struct Batches {
  std::vector<std::string> names;
  std::vector<uint8_t> pixels, labels;

  explicit Batches(Split split) {
    if (split == Split::test) names.emplace_back("test_batch.bin");
    for (int i = 1; split == Split::train && i <= 5; ++i) names.push_back(join({"data_batch_", i, ".bin"}));
    pixels.resize(names.size() * kBatch * kExample);
    labels.resize(names.size() * kBatch);
  }
  void read(size_t i, ByteSource& source) {
    read_cifar10_batch(source, std::span(pixels).subspan(i * kBatch * kExample, kBatch * kExample),
                       std::span(labels).subspan(i * kBatch, kBatch));
  }
};

/// Returns an empty path if there is no such file.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& place : {folder, folder / kOwnFolder})
    for (const char* ending : {"", ".gz", ".xz"})
      if (std::filesystem::is_regular_file(place / (name + ending))) return place / (name + ending);
  return {};
}

/// Accepts the files of the archive in any order.
void read_archive(const std::filesystem::path& path, Batches& batches) {
  std::vector<bool> found(batches.names.size());
  TarArchive archive(open_source(path));
  while (const auto source = archive.next())
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] || !source->name().ends_with("/" + batches.names[i])) continue;
      batches.read(i, *source);
      found[i] = true;
    }
  for (size_t i = 0; i < found.size(); ++i)
    check_input(found[i], path.string(), ": holds no ", kOwnFolder, "/", batches.names[i]);
}

void read_folder(const std::filesystem::path& folder, Batches& batches) {
  std::vector<std::filesystem::path> paths;
  for (const auto& name : batches.names) {
    paths.push_back(find_file(folder, name));
    check_input(!paths.back().empty(), "cifar10: neither ", folder.string(), " nor its ", kOwnFolder, " holds ", name,
                ", plain, .gz or .xz, nor is there ", kArchive);
  }
  parallel_for(0, std::ssize(paths), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      batches.read(i, *open_source(paths[i]));
  });
}

}  // namespace

void read_cifar10_batch(ByteSource& source, std::span<uint8_t> pixels, std::span<uint8_t> labels) {
  check(pixels.size() == labels.size() * kExample, "cifar10: room for ", pixels.size(), " bytes of pixels and ",
        labels.size(), " labels");
  std::array<uint8_t, kRecord> record;
  const size_t size = labels.size() * kRecord;
  uint8_t* pixel = pixels.data();
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t offset = i * kRecord, found = source.read(record);
    check_input(found == kRecord, source.name(), ": truncated: data end at offset ", offset + found, ", ",
                labels.size(), " examples have ", size, " bytes");
    check_input(record[0] < kCifar10Spec.classes, source.name(), ": label ", record[0], " of example ", i,
                " at offset ", offset, ", expected 0 to ", kCifar10Spec.classes - 1);
    labels[i] = record[0];
    for (size_t place = 1; place <= kPlane; ++place)
      for (size_t channel = 0; channel < 3; ++channel) *pixel++ = record[place + channel * kPlane];
  }
  uint8_t extra;
  check_input(source.read({&extra, 1}) == 0, source.name(), ": trailing bytes at offset ", size, ", where ",
              labels.size(), " examples end");
}

MemoryDataset load_cifar10(const std::filesystem::path& folder, Split split) {
  check_input(std::filesystem::is_directory(folder), "cifar10: ", folder.string(), " is not a folder");
  Batches batches(split);
  const auto archive = folder / kArchive;
  if (find_file(folder, batches.names.front()).empty() && std::filesystem::is_regular_file(archive))
    read_archive(archive, batches);
  else
    read_folder(folder, batches);
  return {kCifar10Spec, std::move(batches.pixels), std::move(batches.labels)};
}

}  // namespace tern
