#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tern/core/device.h"
#include "tern/core/tensor.h"
#include "tern/data/dataset.h"
#include "tern/data/loader.h"
#include "tern/data/transforms.h"
#include "tern/kernels/transform_images.h"

namespace tern::trainer {

/// All pixels of a data set as bytes on a CUDA device, which makes a loader's images of them: the same bits, without
/// the way there for each batch. Immutable.
class ResidentSet {
 public:
  /// Whether `device` is one for it, and `data` small enough to be held beside a model: 512 MiB.
  static bool takes(const Dataset& data, Device device);

  ResidentSet(const Dataset& data, const Transform& transform, Device device);

  /// [n, C, h, w] of n images.
  Shape images_shape(int64_t n) const { return {n, output_.channels, output_.height, output_.width}; }
  /// What `make_images` takes of a batch, on the CPU.
  static Tensor draws(const std::vector<Augmentation>& augmentations);
  /// `images` of the examples `indices`, i64 [n], all on the device.
  void make_images(const Tensor& indices, const Tensor& draws, Tensor& images) const {
    kernels::transform_images(pixels_, indices, draws, map_, images);
  }

 private:
  ImageSpec output_;
  kernels::ImageMap map_;
  Tensor pixels_;
};

/// A batch as a model reads it; labels stay on the CPU as well, where answers are counted.
struct FedBatch {
  Tensor images, labels, indices;
  Tensor cpu_labels;

  int64_t size() const { return images.size(0); }
};

/// Brings a loader's batches to the device that computes, the next one beside the kernels that work on this one. The
/// loader, which must outlive it, is started by its owner. Used by one thread.
class BatchFeed {
 public:
  /// With `set`, which must outlive it too, the loader gives no images: they are made of the set's bytes.
  BatchFeed(DataLoader& loader, Device device, const ResidentSet* set = nullptr);
  ~BatchFeed();

  /// The loader's next batch on the device, or nothing where the epoch has ended. It holds until the call after the
  /// next.
  std::optional<FedBatch> next();
  /// Begins to bring the batch after it; call once the work on this one is issued. Without this call `next` does it.
  void prefetch() {
    if (upload_) fetch();
  }
  /// Forgets what was brought ahead: before the loader is started anew.
  void reset();

 private:
  void fetch();
  Tensor bring(Tensor& buffer, const Tensor& source);
  Tensor rows(Tensor& buffer, const Shape& shape, const TensorOptions& options);

  struct Buffers {
    Tensor images, labels, indices, draws;
  };
  DataLoader& loader_;
  Device device_;
  const ResidentSet* set_;
  std::unique_ptr<Upload> upload_;  ///< null on the CPU
  std::array<Buffers, 2> buffers_;
  size_t turn_ = 0;
  std::optional<FedBatch> ahead_;
  Tensor draws_ahead_;
};

}  // namespace tern::trainer
