#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

namespace tern {

/// What a cache must hold.
struct ImageCacheKey {
  uint32_t made_of = 0;  ///< checksum of the sources of the examples
  uint64_t examples = 0;
  uint64_t example_bytes = 0;  ///< of one example

  friend bool operator==(const ImageCacheKey&, const ImageCacheKey&) = default;
};

/// A file with the pixels of examples, one checksum each, mapped into memory. The operating system keeps the pages that
/// are in use. Reads are thread-safe. The file may be replaced while it is mapped.
class ImageCache {
 public:
  /// Writes the pixels of example `index`; returns false if it has none. Any thread may call it.
  using Source = std::function<bool(size_t index, std::span<uint8_t> pixels)>;
  /// Receives how many examples are done: first 0, then every few hundred. While another process makes the cache, it
  /// receives nullopt several times a second. It may throw to give up.
  using Progress = std::function<void(std::optional<size_t> done)>;

  /// Opens the cache at `path`. Returns nullopt if it is missing, incomplete or does not match `key`. Throws InputError
  /// if the file cannot be mapped.
  static std::optional<ImageCache> open(const std::filesystem::path& path, const ImageCacheKey& key);
  /// Opens the cache, or makes it from `source` if `open` finds none. If several processes call this, one makes the
  /// cache and the others wait. Throws InputError if the file cannot be written.
  static ImageCache open_or_make(const std::filesystem::path& path, const ImageCacheKey& key, const Source& source,
                                 const Progress& progress);

  ~ImageCache();
  ImageCache(ImageCache&& other) noexcept;
  ImageCache& operator=(ImageCache&& other) noexcept;

  /// Copies the pixels of example `index`. Returns false if `source` had none. Throws InputError if their checksum is
  /// wrong.
  bool read(size_t index, std::span<uint8_t> pixels) const;

 private:
  ImageCache(const std::filesystem::path& path, std::span<const std::byte> file, const ImageCacheKey& key)
      : path_(path), file_(file), key_(key) {}

  std::filesystem::path path_;
  std::span<const std::byte> file_;  ///< the mapping; the destructor unmaps it
  ImageCacheKey key_;
};

}  // namespace tern
