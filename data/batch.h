#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/transforms.h"

namespace tern {

/// N examples, ready for a step, and what they were made of: a device that applies `augmentations` to `pixels` itself
/// gets `images`. A value; its tensors are nobody else's.
struct Batch {
  Tensor images;   ///< f32 [N, C, h, w], channels_last
  Tensor labels;   ///< i64 [N]
  Tensor indices;  ///< i64 [N]: global indices in the data set, the key of every draw per example
  Tensor pixels;   ///< u8 [N, C, H, W], channels_last, as read
  std::vector<Augmentation> augmentations;

  int64_t size() const { return labels.size(0); }
};

}  // namespace tern
