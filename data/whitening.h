#pragma once

#include "tern/data/dataset.h"
#include "tern/data/transforms.h"

namespace tern {

struct WhiteningOptions {
  int64_t extent = 2;     ///< height and width of a patch
  int64_t images = 5000;  ///< how many of the data set's first images are measured
  double epsilon = 5e-4;  ///< added to each variance
};

/// Filters [2n, C, extent, extent] for a first convolution, with n = C · extent². The first n map patches of the images
/// to numbers that are not correlated and have about the same mean square: eigenvectors of the patches' second moments
/// E[p pᵀ], the largest eigenvalue λ first, divided by √(λ + epsilon). The others are their negatives (Page, "How to
/// train your ResNet", 2019; Jordan, 2024). The images are those of `transform.for_evaluation()`. Throws InputError if
/// there are none, or if they are smaller than a patch.
Tensor whitening_filters(const ImageDataset& images, const Transform& transform, const WhiteningOptions& options = {});

}  // namespace tern
