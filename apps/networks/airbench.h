#pragma once

#include "tern/layers/activation.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// The network of airbench94 (Jordan, "94 % on CIFAR-10 in 3.29 seconds on a single GPU", 2024, the version with
/// Muon): frozen filters of 2×2 that whiten patches, then three groups of two convolutions. It has 1,971,352 trained
/// parameters for colour images and ten classes.
struct Airbench final : Layer {
  struct Options {
    int64_t channels = 3, height = 32, width = 32;  ///< 25×25 or more
    int64_t classes = 10;
  };
  explicit Airbench(const Options& options);

  /// x [N, channels, height, width] gives logits [N, classes].
  Variable forward(const Variable& x) override;

  /// Two convolutions, each with batch normalisation that has a bias alone, and a pooling by 2 after the first.
  struct Group final : Layer {
    struct Options {
      int64_t in = 1, out = 1;
    };
    explicit Group(const Options& options);
    Variable forward(const Variable& x) override;

    Conv2d& conv1;
    BatchNorm& norm1;
    Conv2d& conv2;
    BatchNorm& norm2;
  };

  Conv2d& whiten;
  Group& group1;
  Group& group2;
  Group& group3;
  Linear& head;
};

/// Airbench94 with its recipe for CIFAR-10: 200 steps of 2000 images. Its author reports 94.01 %.
const Network& airbench();

}  // namespace tern::networks
