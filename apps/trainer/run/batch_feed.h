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
#include "tern/trainer/task.h"

namespace tern::trainer {

/// All pixels of a data set as bytes on a CUDA device. Makes a loader's images from them on the device, with the same
/// bits, so that no batch has to be copied there. Immutable.
class ResidentSet {
 public:
  /// Null unless `data` has pictures, `device` supports it, and `data` is small enough to fit beside a model: up to 512
  /// MiB.
  static std::unique_ptr<ResidentSet> make(const Dataset& data, const Transform& transform, Device device);

  ResidentSet(const ImageDataset& data, const Transform& transform, Device device);

  /// The shape [n, C, h, w] of n images.
  Shape images_shape(int64_t n) const { return {n, output_.channels, output_.height, output_.width}; }
  /// The random choices of a batch in the format of `make_images`, on the CPU.
  static Tensor draws(const std::vector<Augmentation>& augmentations);
  /// Writes the `images` of the examples `indices`, i64 [n]. All tensors are on the device.
  void make_images(const Tensor& indices, const Tensor& draws, Tensor& images) const {
    kernels::transform_images(pixels_, indices, draws, map_, images);
  }

 private:
  ImageSpec output_;
  kernels::ImageMap map_;
  Tensor pixels_;
};

/// Copies a loader's batches to the compute device. Copies the next batch while kernels work on the present one. The
/// loader's owner starts the loader, and the loader must outlive this. One thread.
class BatchFeed {
 public:
  /// `precision` is the dtype of activations; see DeviceBatch::input. If `set` is given, "image" is made from it, and
  /// the loader gives none. `set` must outlive this.
  BatchFeed(DataLoader& loader, Device device, DType precision, const ResidentSet* set = nullptr);
  ~BatchFeed();

  /// The loader's next batch on the device; nullopt at the end of the epoch. The batch is valid until the second call
  /// after this one.
  std::optional<DeviceBatch> next();
  /// Starts to copy the next batch. Call it after the work on the present one is issued. Without this call, `next` does
  /// it.
  void prefetch() {
    if (upload_) fetch();
  }
  /// Drops the batch that was fetched ahead. Call it before the loader is restarted.
  void reset();

 private:
  void fetch();
  Tensor bring(Tensor& buffer, const Tensor& source);
  /// Memory of this shape on the device: a part of `buffer`, which grows if it is too small.
  Tensor room(Tensor& buffer, const Shape& shape, const TensorOptions& options);

  struct Buffers {
    NamedTensors fields;
    Tensor indices, draws;
  };
  DataLoader& loader_;
  Device device_;
  DType precision_;
  const ResidentSet* set_;
  std::unique_ptr<Upload> upload_;  ///< null on the CPU
  std::array<Buffers, 2> buffers_;
  size_t turn_ = 0;
  std::optional<DeviceBatch> ahead_;
  Tensor draws_ahead_, images_ahead_;
};

}  // namespace tern::trainer
