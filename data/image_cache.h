#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

namespace tern {

/// What a cache has to hold.
struct ImageCacheKey {
  uint32_t made_of = 0;  ///< a checksum of what its examples are made of
  uint64_t examples = 0;
  uint64_t example_bytes = 0;  ///< of each

  friend bool operator==(const ImageCacheKey&, const ImageCacheKey&) = default;
};

/// Examples' pixels in a file, each with a checksum, mapped into memory: the system keeps in it what is in use. Reads
/// are thread-safe; the file may be replaced meanwhile.
class ImageCache {
 public:
  /// Writes the pixels of example `index`, from any thread; false where it has none.
  using Source = std::function<bool(size_t index, std::span<uint8_t> pixels)>;
  /// Hears how many examples are done, at first 0, then every few hundred; before that, while another process makes
  /// the cache, nullopt several times a second. Gives up by an exception.
  using Progress = std::function<void(std::optional<size_t> done)>;

  /// The cache at `path`, if it is whole and holds what `key` says.
  static std::optional<ImageCache> open(const std::filesystem::path& path, const ImageCacheKey& key);
  /// The same, made of `source` where there is none; among processes one makes it, while the others wait. An InputError
  /// where it cannot be written.
  static ImageCache open_or_make(const std::filesystem::path& path, const ImageCacheKey& key, const Source& source,
                                 const Progress& progress);

  ~ImageCache();
  ImageCache(ImageCache&& other) noexcept;
  ImageCache& operator=(ImageCache&& other) noexcept;

  /// False where `source` had none; an InputError where the pixels are not those that were written.
  bool read(size_t index, std::span<uint8_t> pixels) const;

 private:
  ImageCache(const std::filesystem::path& path, std::span<const std::byte> file, const ImageCacheKey& key)
      : path_(path), file_(file), key_(key) {}

  std::filesystem::path path_;
  std::span<const std::byte> file_;  ///< the mapping, unmapped by this
  ImageCacheKey key_;
};

}  // namespace tern
