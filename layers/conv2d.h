#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

namespace tern {

/// A convolution of x [N, in, H, W], as torch.nn.Conv2d. Gives [N, out, H', W']. Then max(·, 0) with `relu`.
class Conv2d final : public Layer {
 public:
  struct Options {
    int64_t in = 1, out = 1;
    Extent2 kernel = 3;
    Extent2 stride = 1;
    Extent2 padding = 0;
    bool same = false;  ///< pads so that the result has the input's height and width; needs stride 1, and no `padding`
    Extent2 dilation = 1;
    int64_t groups = 1;
    bool bias = true;
    bool relu = false;
    /// On a GPU, x may have more channels than `in`, if there are no groups: spare ones, which are 0. GPUs convolve
    /// multiples of 8 channels faster in bf16, so a model's first layer takes images with such channels.
    bool spare_channels = false;
    Initializer weight_initializer = default_weight();
    Initializer bias_initializer = {};  ///< empty: `default_bias`
  };
  explicit Conv2d(const Options& options);
  Variable forward(const Variable& x) override;
  bool takes_spare_channels() const { return spare_channels_; }

  Parameter& weight;
  Parameter* const bias;  ///< null if there is none

 private:
  ConvGeometry geometry_;
  bool same_, relu_, spare_channels_;
};

/// The transposed convolution of x [N, in, H, W], as torch.nn.ConvTranspose2d: `conv_transpose2d`.
class ConvTranspose2d final : public Layer {
 public:
  struct Options {
    int64_t in = 1, out = 1;
    Extent2 kernel = 3;
    Extent2 stride = 1;
    Extent2 padding = 0;
    Extent2 added = 0;  ///< PyTorch's output_padding
    Extent2 dilation = 1;
    int64_t groups = 1;
    bool bias = true;
    Initializer weight_initializer = default_weight();
    Initializer bias_initializer = {};  ///< empty: `default_bias`
  };
  explicit ConvTranspose2d(const Options& options);
  Variable forward(const Variable& x) override;

  Parameter& weight;      ///< [in, out/groups, kh, kw]
  Parameter* const bias;  ///< null if there is none

 private:
  ConvGeometry geometry_;
  Extent2 added_;
};

}  // namespace tern
