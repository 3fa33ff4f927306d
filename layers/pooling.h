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

/// The means of `size` windows that cover x [N, C, H, W], as torch.nn.AdaptiveAvgPool2d.
class AdaptiveAvgPool2d final : public Layer {
 public:
  struct Options {
    Extent2 size = 1;
  };
  explicit AdaptiveAvgPool2d(const Options& options) : size_(options.size) {}
  Variable forward(const Variable& x) override { return adaptive_average_pool2d(x, size_); }

 private:
  Extent2 size_;
};

/// Repeats each element of x [N, C, H, W] along H and W, as torch.nn.UpsamplingNearest2d(scale_factor).
class UpsampleNearest2d final : public Layer {
 public:
  struct Options {
    Extent2 factor = 2;
  };
  explicit UpsampleNearest2d(const Options& options) : factor_(options.factor) {}
  Variable forward(const Variable& x) override { return upsample_nearest2d(x, factor_); }

 private:
  Extent2 factor_;
};

/// Puts a border of the mirror image around x [N, C, H, W], as torch.nn.ReflectionPad2d.
class ReflectionPad2d final : public Layer {
 public:
  using Options = Border;
  explicit ReflectionPad2d(const Options& border) : border_(border) {}
  Variable forward(const Variable& x) override { return reflection_pad2d(x, border_); }

 private:
  Border border_;
};

}  // namespace tern
