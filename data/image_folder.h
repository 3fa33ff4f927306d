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

/// How a picture of any proportions becomes a square.
enum class Fit : uint8_t {
  crop,    ///< the middle: its shorter side, as Krizhevsky et al. (2012, section 2) do
  squash,  ///< all of it, without keeping its proportions, as Caffe and TernGrad do
};

struct ImageFolderOptions {
  int side = 256;  ///< pixels
  Fit fit = Fit::crop;
};

/// Pictures in files as examples of `side`×`side` pixels in colour, decoded, turned as Exif says and resized as they
/// are read. A file that cannot be read is no error: the next one that can be stands in for it, with its own label.
class ImageFolder final : public Dataset {
 public:
  ImageFolder(ImageList list, const ImageFolderOptions& options);

  int64_t size() const override { return std::ssize(list_.files); }
  ImageSpec spec() const override;
  /// An InputError where no file of all can be read.
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;
  /// Of names, labels and sizes of the files, and of the options.
  uint32_t fingerprint() const override;
  std::vector<std::string> unread() const override;

  /// From now on examples come from the cache at `path`, the same bytes. Where it is missing, not whole, or made of
  /// other files than those that are there now, it is made, by the threads of `parallel_for`, and `progress` told.
  /// Processes that share it wait for the first, and `progress` is told of that too. Not thread-safe.
  void use_cache(const std::filesystem::path& path, const ImageCache::Progress& progress);

 private:
  bool read_one(size_t index, std::span<uint8_t> pixels) const;
  void decode(const ImageFile& file, std::span<uint8_t> pixels) const;

  ImageList list_;
  ImageFolderOptions options_;
  std::optional<ImageCache> cache_;
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::string> unread_;  ///< which and why, by index
};

}  // namespace tern
