#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/sample.h"

namespace tern {

enum class Split : uint8_t { train, test };

/// Samples, addressed by index. Every sample has the same fields. Reads are thread-safe: the threads of a loader share
/// one Dataset.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual std::vector<Field> fields() const = 0;
  /// The sample at `index`, from 0 to size() - 1. The threads of a loader call this, so it must not use parallel_for.
  virtual Sample sample(int64_t index) const = 0;
  /// The length by which a Sampler groups samples of similar length.
  virtual int64_t length(int64_t /*index*/) const { return 1; }
  /// A name for messages: "tones".
  virtual std::string name() const { return "unnamed"; }
  /// A checksum that distinguishes data sets. This version returns the CRC-32C of all samples: the name, dtype, shape
  /// and elements of each tensor.
  virtual uint32_t fingerprint() const;
  /// One message for each sample that could not be read so far, in index order; it says why. Reads returned other
  /// samples instead of these. Thread-safe.
  virtual std::vector<std::string> unread() const { return {}; }
};

/// A data set of tensors in memory: sample i is row i of each tensor. Shares the tensors' elements, which must not
/// change.
class TensorDataset final : public Dataset {
 public:
  /// The fields are dense, with the tensors' dtypes. Throws InputError unless there is a tensor, all are on the CPU,
  /// and all have the same first extent.
  explicit TensorDataset(NamedTensors tensors);

  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override;
  Sample sample(int64_t index) const override;

 private:
  NamedTensors tensors_;
  int64_t size_ = 0;
};

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

/// Labelled images. A loader applies a Transform to their pixels.
class ImageDataset : public Dataset {
 public:
  virtual ImageSpec spec() const = 0;
  /// Writes the pixels of example `index` in H, W, C order (the order in a channels-last batch). Returns the label in
  /// [0, classes). `pixels` holds spec().numel() bytes. The threads of a loader call this, so it must not use
  /// parallel_for.
  virtual int64_t read(int64_t index, std::span<uint8_t> pixels) const = 0;

  /// "image", u8 [H, W, C], and "label", i64 [].
  std::vector<Field> fields() const final;
  Sample sample(int64_t index) const final;
  /// The CRC-32C of all pixels and labels.
  uint32_t fingerprint() const override;
};

/// An ImageDataset with all its pixels and labels in memory; immutable.
class MemoryDataset final : public ImageDataset {
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

/// A data set of `size` images. `draw(i, pixels)` fills the pixels [H, W, C] of image i and returns its label; several
/// threads call it.
MemoryDataset draw_dataset(const ImageSpec& spec, int64_t size,
                           const std::function<int64_t(int64_t index, std::span<uint8_t> pixels)>& draw);

}  // namespace tern
