#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/dataset.h"
#include "tern/data/transforms.h"
#include "tern/kernels/transform_images.h"

namespace tern {

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

}  // namespace tern
