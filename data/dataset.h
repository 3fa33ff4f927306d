#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// What every example of an image set looks like.
struct ImageSpec {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t classes = 0;

  /// Values of one example.
  int64_t numel() const { return channels * height * width; }
  friend bool operator==(const ImageSpec&, const ImageSpec&) = default;
};

enum class Split : uint8_t { train, test };

/// Labelled images, addressed by index. Reads are thread-safe: a loader's threads share one Dataset.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual ImageSpec spec() const = 0;
  /// Writes the pixels of example `index` in H, W, C order (as a channels-last batch holds them) and returns its
  /// label in [0, classes). `pixels` holds spec().numel() bytes. Called from a loader's threads: no parallel_for.
  virtual int64_t read(int64_t index, std::span<uint8_t> pixels) const = 0;
  /// A checksum that tells sets apart: here the CRC-32C of all pixels and labels.
  virtual uint32_t fingerprint() const;
  /// Which examples could not be read so far, so that others stand in for them, and why; in their order. Thread-safe.
  virtual std::vector<std::string> unread() const { return {}; }
};

/// A Dataset whose bytes lie in memory; immutable.
class MemoryDataset final : public Dataset {
 public:
  /// `pixels` [labels.size(), H, W, C]; an error where the sizes disagree or a label is out of range.
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
