#include "tern/data/image_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "tern/core/atomic_file.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/core/parallel.h"

namespace tern {
namespace {

constexpr uint32_t kVersion = 2;

// File format: a Header, one Entry per example, zeros up to a page boundary, then the pixels.
struct Header {
  char magic[8] = {'t', 'e', 'r', 'n', 'p', 'i', 'x', '\n'};
  uint32_t version = kVersion;
  uint32_t made_of = 0;
  uint64_t examples = 0, example_bytes = 0;
  uint32_t entries_sum = 0;  ///< CRC-32C of the entries that follow
  uint32_t own_sum = 0;      ///< CRC-32C of the fields above

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
  uint32_t sum() const { return crc32c(bytes().first(offsetof(Header, own_sum))); }
};
static_assert(sizeof(Header) == 40);

struct Entry {
  uint32_t present = 0;  ///< 0: the source had no such example
  uint32_t sum = 0;      ///< CRC-32C of its pixels
};

size_t pixels_begin(const ImageCacheKey& key) {
  constexpr size_t kPage = 4096;
  return (sizeof(Header) + key.examples * sizeof(Entry) + kPage - 1) / kPage * kPage;
}

/// A file descriptor; the destructor closes it.
struct File {
  int descriptor;
  File(const std::filesystem::path& path, int flags) : descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

Header header_of(const ImageCacheKey& key, std::span<const Entry> entries) {
  Header header{.made_of = key.made_of, .examples = key.examples, .example_bytes = key.example_bytes};
  header.entries_sum = crc32c(std::as_bytes(entries));
  header.own_sum = header.sum();
  return header;
}

void make(const std::filesystem::path& path, const ImageCacheKey& key, const ImageCache::Source& source,
          const ImageCache::Progress& progress) {
  constexpr uint64_t kTogether = 256;  // examples in memory at the same time
  AtomicFile file(path);
  std::vector<Entry> entries(key.examples);
  std::vector<uint8_t> pixels(std::min(kTogether, key.examples) * key.example_bytes);
  file.write(std::vector<std::byte>(pixels_begin(key)));
  for (uint64_t done = 0; done < key.examples; done += kTogether) {
    progress(done);
    const uint64_t count = std::min(kTogether, key.examples - done);
    const auto room = std::span(pixels).first(count * key.example_bytes);
    std::ranges::fill(room, 0);
    parallel_for(0, static_cast<int64_t>(count), 1, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        const auto own = room.subspan(i * key.example_bytes, key.example_bytes);
        if (source(done + i, own)) entries[done + i] = {.present = 1, .sum = crc32c(std::as_bytes(own))};
      }
    });
    file.write(std::as_bytes(room));
  }
  file.rewrite(0, header_of(key, entries).bytes());
  file.rewrite(sizeof(Header), std::as_bytes(std::span(entries)));
  file.commit();
}

/// Takes the lock; calls `progress` while another process holds it. If the file system does not support locks, returns
/// without one; then each process makes the same cache.
void await(const File& lock, const ImageCache::Progress& progress) {
  while (::flock(lock.descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    progress(std::nullopt);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

const Entry* entries_of(std::span<const std::byte> file) {
  return reinterpret_cast<const Entry*>(file.data() + sizeof(Header));
}

}  // namespace

std::optional<ImageCache> ImageCache::open(const std::filesystem::path& path, const ImageCacheKey& key) {
  const File file(path, O_RDONLY);
  struct stat status = {};
  const size_t size = pixels_begin(key) + key.examples * key.example_bytes;
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0 || static_cast<size_t>(status.st_size) != size)
    return {};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor, 0);
  check_input(memory != MAP_FAILED, path.string(), ": ", size, " bytes cannot be mapped: ", std::strerror(errno));
  ImageCache cache(path, {static_cast<const std::byte*>(memory), size}, key);
  const Header expected = header_of(key, {entries_of(cache.file_), key.examples});
  if (std::memcmp(memory, &expected, sizeof expected) != 0) return {};
  return cache;
}

ImageCache ImageCache::open_or_make(const std::filesystem::path& path, const ImageCacheKey& key, const Source& source,
                                    const Progress& progress) {
  if (auto cache = open(path, key)) return std::move(*cache);
  check_writable(path);
  const File lock(path.string() + ".lock", O_RDWR | O_CREAT);
  await(lock, progress);
  if (auto cache = open(path, key)) return std::move(*cache);
  make(path, key, source, progress);
  auto cache = open(path, key);
  check_input(cache.has_value(), path.string(), ": cannot be read back as it was written; check the disk");
  return std::move(*cache);
}

ImageCache::~ImageCache() {
  if (!file_.empty()) ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

ImageCache::ImageCache(ImageCache&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, {})), key_(other.key_) {}

ImageCache& ImageCache::operator=(ImageCache&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(key_, other.key_);
  return *this;
}

bool ImageCache::read(size_t index, std::span<uint8_t> pixels) const {
  const Entry& entry = entries_of(file_)[index];
  if (entry.present == 0) return false;
  const std::byte* from = file_.data() + pixels_begin(key_) + index * key_.example_bytes;
  std::memcpy(pixels.data(), from, pixels.size());
  check_input(crc32c(std::as_bytes(pixels)) == entry.sum, path_.string(), ": the pixels of image ", index,
              " are not those that were written; remove this file, and the next run makes it anew");
  return true;
}

}  // namespace tern
