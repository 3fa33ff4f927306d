#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// The shape of the examples of an image data set, and its number of classes.
struct ImageSpec {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;

  /// Number of values in one example.
  int64_t numel() const { return channels * height * width; }
  friend bool operator==(const ImageSpec&, const ImageSpec&) = default;
};

enum class Split : uint8_t { train, test };

/// Labelled images, addressed by index. Reads are thread-safe: the threads of a loader share one Dataset.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual ImageSpec spec() const = 0;
  /// Writes the pixels of example `index` in H, W, C order (the order in a channels-last batch). Returns the label in
  /// [0, classes). `pixels` holds spec().numel() bytes. The threads of a loader call this, so it must not use
  /// parallel_for.
  virtual int64_t read(int64_t index, std::span<uint8_t> pixels) const = 0;
  /// A checksum that distinguishes data sets. This version returns the CRC-32C of all pixels and labels.
  virtual uint32_t fingerprint() const;
  /// One message for each example that could not be read so far, in index order; it says why. `read` returned other
  /// examples instead of these. Thread-safe.
  virtual std::vector<std::string> unread() const { return {}; }
};

/// A Dataset with all its pixels and labels in memory; immutable.
class MemoryDataset final : public Dataset {
 public:
  /// `pixels` is [labels.size(), H, W, C]. Throws Error if the sizes disagree or a label is out of range.
  MemoryDataset(const ImageSpec& spec, std::vector<uint8_t> pixels, std::vector<uint8_t> labels);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  ImageSpec spec() const override { return spec_; }
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override;

 private:
  ImageSpec spec_;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
};

}  // namespace tern
