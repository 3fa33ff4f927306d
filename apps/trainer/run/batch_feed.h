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
#include "tern/layers/module.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

/// The multiple of channels that the images of `model` should have on a GPU. Tensor cores calculate in bf16 with
/// multiples of 8.
int64_t image_channel_multiple(Module& model, DType activations);
/// The format of a training's images on a GPU. In strict fp32, cuDNN's engines work on row-major images: the best ones
/// transpose others in their workspace, there and back (the test CudnnPlan*). Operations give results in this format.
MemoryFormat image_format(Device device, DType activations);

/// Makes a loader's images on a CUDA device, with the same bits, from pixels as bytes. The pixels of a small data set
/// are all on the device, so that no batch has to be copied there. Those of a large one come batch by batch. Immutable.
class DeviceImages {
 public:
  /// Null unless `data` has pictures and `device` supports it. A data set is small if it fits beside a model: up to 512
  /// MiB. Images get spare channels, which are 0, up to a multiple of `channel_multiple`.
  static std::unique_ptr<DeviceImages> make(const Dataset& data, const Transform& transform, Device device,
                                            int64_t channel_multiple);

  /// `resident`: all pixels are on the device.
  DeviceImages(const ImageDataset& data, const Transform& transform, Device device, bool resident,
               int64_t channel_multiple = 1);

  /// What the loader's batches must have.
  ImageForm needed() const { return resident_.defined() ? ImageForm::none : ImageForm::pixels; }
  /// The labels that were read with the resident pixels, for LoaderOptions; null if the pixels are not resident.
  std::shared_ptr<const std::vector<int64_t>> labels() const { return labels_; }
  /// The shape [n, C, H, W] of n examples, and [n, C, h, w] of their images.
  Shape pixels_shape(int64_t n) const { return {n, input_.channels, input_.height, input_.width}; }
  Shape images_shape(int64_t n) const { return {n, output_.channels, output_.height, output_.width}; }
  /// The random choices of a batch in the format of `make`, on the CPU.
  static Tensor draws(const std::vector<Augmentation>& augmentations);
  /// Writes the `images` of a batch: of the examples `indices`, i64 [n], or of its `pixels` if they are needed. All
  /// tensors are on the device.
  void make(const Tensor& indices, const Tensor& pixels, const Tensor& draws, Tensor& images) const {
    const bool is_resident = resident_.defined();
    kernels::transform_images(is_resident ? resident_ : pixels, is_resident ? indices : Tensor(), draws, map_, images);
  }

 private:
  ImageSpec input_, output_;
  kernels::ImageMap map_;
  Tensor resident_;  ///< u8 [N, C, H, W], or undefined
  std::shared_ptr<const std::vector<int64_t>> labels_;
};

/// Copies a loader's batches to the compute device, and makes their images there. Does this for the next batch while
/// kernels work on the present one. The loader's owner starts the loader, and the loader must outlive this. One thread.
class BatchFeed {
 public:
  /// `precision` is the dtype of activations; see DeviceBatch::input. If `images` is given, it makes "image" in that
  /// dtype, and the loader gives what it needs. `images` must outlive this.
  BatchFeed(DataLoader& loader, Device device, DType precision, const DeviceImages* images = nullptr);
  ~BatchFeed();

  /// The loader's next batch on the device; nullopt at the end of the epoch. The batch is valid until the second call
  /// after this one. Batches of the same shapes have the memory of one of two batches, in turn.
  std::optional<DeviceBatch> next();
  /// Starts to copy the next batch. Call it after the work on the present one is issued. Without this call, `next` does
  /// it.
  void prefetch() {
    if (upload_) fetch();
  }
  /// Drops the batch that was fetched ahead. Call it before the loader is restarted.
  void reset();

 private:
  /// Memory of the device for a batch: bytes. It grows if a batch is larger.
  struct Buffers {
    Tensor fields, pixels, images;
  };

  void fetch();
  std::vector<Tensor> bring(Tensor& buffer, const std::vector<Tensor>& sources);
  Tensor make_images(Buffers& to, const Tensor& indices, const Tensor& draws, std::shared_ptr<void> bytes);
  const Tensor& grow(Tensor& buffer, size_t bytes);

  DataLoader& loader_;
  Device device_;
  DType precision_;
  const DeviceImages* images_;
  std::unique_ptr<Upload> upload_;  ///< null on the CPU
  std::array<Buffers, 2> buffers_;
  size_t turn_ = 0;
  std::optional<DeviceBatch> ahead_;
};

}  // namespace tern::trainer
