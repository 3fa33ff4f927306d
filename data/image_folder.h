#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/image.h"
#include "tern/data/image_cache.h"
#include "tern/data/image_list.h"

namespace tern {

/// How a picture of any proportions becomes square.
enum class Fit : uint8_t {
  crop,    ///< the largest centred square, as in Krizhevsky et al. (2012, section 2)
  squash,  ///< the whole picture, without its proportions, as in Caffe and TernGrad
};

struct ImageFolderOptions {
  int side = 256;  ///< width and height of an example, in pixels
  Fit fit = Fit::crop;
};

/// Picture files as colour examples of `side`×`side` pixels. `read` decodes a file, rotates it as Exif says and resizes
/// it. A file that cannot be read is not an error: `read` returns the next readable file instead, with that file's
/// label.
class ImageFolder final : public ImageDataset {
 public:
  ImageFolder(ImageList list, const ImageFolderOptions& options);

  int64_t size() const override { return std::ssize(list_.files); }
  ImageSpec spec() const override;
  /// Throws InputError if none of the files can be read.
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;
  /// Checksum of the options and of each file's class name, file name and size.
  uint32_t fingerprint() const override;
  std::vector<std::string> unread() const override;

  /// From now on `read` takes the examples from the cache at `path`; the bytes are the same. Makes the cache if it is
  /// missing, incomplete or made from other files than the present ones. The threads of `parallel_for` make it;
  /// `progress` hears how far they are. If several processes share the cache, the first one makes it and the others
  /// wait; `progress` hears of the wait too. Not thread-safe.
  void use_cache(const std::filesystem::path& path, const ImageCache::Progress& progress);

 private:
  bool read_one(size_t index, std::span<uint8_t> pixels) const;
  void decode(const ImageFile& file, std::span<uint8_t> pixels) const;

  ImageList list_;
  ImageFolderOptions options_;
  std::optional<ImageCache> cache_;
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::string> unread_;  ///< why a file cannot be read, by index
};

}  // namespace tern
