#pragma once

#include <optional>

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// The greatest element of every window of x [N, C, H, W], as torch.nn.MaxPool2d.
class MaxPool2d final : public Layer {
 public:
  struct Options {
    Extent2 window = 2;
    std::optional<Extent2> stride = {};  ///< the extent of the window if not given
    Extent2 padding = 0;
    bool ceil_mode = false;
  };
  explicit MaxPool2d(const Options& options);
  Variable forward(const Variable& x) override;

 private:
  PoolGeometry geometry_;
};

/// The mean of every window of x [N, C, H, W], as torch.nn.AvgPool2d.
class AvgPool2d final : public Layer {
 public:
  struct Options {
    Extent2 window = 2;
    std::optional<Extent2> stride = {};  ///< the extent of the window if not given
    Extent2 padding = 0;
    bool ceil_mode = false;
    bool count_include_pad = true;
  };
  explicit AvgPool2d(const Options& options);
  Variable forward(const Variable& x) override;

 private:
  PoolGeometry geometry_;
};

/// The mean of every channel, [N, C, 1, 1] from [N, C, H, W], as torch.nn.AdaptiveAvgPool2d(1).
class GlobalAvgPool2d final : public Layer {
 public:
  struct Options {};
  explicit GlobalAvgPool2d(const Options& = {}) {}
  Variable forward(const Variable& x) override;
};

}  // namespace tern
