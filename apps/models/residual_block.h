#pragma once

#include "tern/autograd/functional.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/containers.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/normalization.h"

// The blocks of residual networks (He et al., 2016), named as torchvision's.

namespace tern::models {

/// How a shortcut reaches another number of channels (He et al., 2016, section 4.2).
enum class Shortcut : uint8_t {
  identity,    ///< option A: what lies between strides is left out, new channels are zero
  projection,  ///< option B: a 1×1 convolution with normalisation
};

struct BlockOptions {
  int64_t in = 1, width = 1, stride = 1;  ///< `width`: of the 3×3 convolution
  Shortcut shortcut = Shortcut::projection;
};

inline Conv2d::Options residual_convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return {.in = in,
          .out = out,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .bias = false,
          .weight_initializer = kaiming_normal({.fan = Fan::out})};
}

/// Every `stride`-th pixel, between channels of zeros, half of them on either side.
struct ZeroPaddedShortcut final : Module {
  struct Options {
    int64_t channels = 1, stride = 1;
  };
  explicit ZeroPaddedShortcut(const Options& options) : options_(options) {}
  Variable forward(const Variable& x) override {
    const int64_t more = options_.channels - x.shape()[1];
    return pad(average_pool2d(x, {.window = 1, .stride = options_.stride}),
               {{}, {.before = more / 2, .after = more - more / 2}, {}, {}});
  }

 private:
  Options options_;
};

/// The shortcut of a block that makes `out` channels; empty where x passes as it is.
inline void build_shortcut(Sequential& shortcut, const BlockOptions& options, int64_t out) {
  if (options.stride == 1 && options.in == out) return;
  if (options.shortcut == Shortcut::identity) {
    shortcut.append<ZeroPaddedShortcut>({.channels = out, .stride = options.stride});
    return;
  }
  shortcut.append<Conv2d>(residual_convolution(options.in, out, 1, options.stride))
      .append<BatchNorm2d>({.features = out});
}

/// The channels between two convolutions of the block called `block`, with their normalisation.
inline HiddenLayer inner_channels(const std::string& block, int first) {
  const auto layer = [&](const char* kind, int number) { return join({block, ".", kind, number, "."}); };
  HiddenLayer channels{block, {{layer("conv", first) + "weight", 0}, {layer("conv", first + 1) + "weight", 1}}};
  for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
    channels.indices.push_back({layer("bn", first) + tensor, 0});
  return channels;
}

/// Two 3×3 convolutions around a shortcut (figure 2); the second normalisation adds the shortcut in its own pass.
struct BasicBlock final : Module {
  using Options = BlockOptions;
  static constexpr int64_t kExpansion = 1;  ///< channels that leave the block, per channel of its width

  explicit BasicBlock(const Options& o)
      : conv1(add<Conv2d>("conv1", residual_convolution(o.in, o.width, 3, o.stride))),
        bn1(add<BatchNorm2d>("bn1", {.features = o.width, .relu = true})),
        conv2(add<Conv2d>("conv2", residual_convolution(o.width, o.width, 3))),
        bn2(add<BatchNorm2d>("bn2", {.features = o.width, .relu = true})) {
    build_shortcut(downsample, o, o.width);
  }
  Variable forward(const Variable& x) override { return bn2(conv2(bn1(conv1(x))), downsample(x)); }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Conv2d& conv2;
  BatchNorm2d& bn2;
  Sequential& downsample = add<Sequential>("downsample");
};

/// A 3×3 convolution between two of 1×1 (figure 5); the stride is the 3×3's, as in torchvision.
struct Bottleneck final : Module {
  using Options = BlockOptions;
  static constexpr int64_t kExpansion = 4;

  explicit Bottleneck(const Options& o)
      : conv1(add<Conv2d>("conv1", residual_convolution(o.in, o.width, 1))),
        bn1(add<BatchNorm2d>("bn1", {.features = o.width, .relu = true})),
        conv2(add<Conv2d>("conv2", residual_convolution(o.width, o.width, 3, o.stride))),
        bn2(add<BatchNorm2d>("bn2", {.features = o.width, .relu = true})),
        conv3(add<Conv2d>("conv3", residual_convolution(o.width, kExpansion * o.width, 1))),
        bn3(add<BatchNorm2d>("bn3", {.features = kExpansion * o.width, .relu = true})) {
    build_shortcut(downsample, o, kExpansion * o.width);
  }
  Variable forward(const Variable& x) override { return bn3(conv3(bn2(conv2(bn1(conv1(x))))), downsample(x)); }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Conv2d& conv2;
  BatchNorm2d& bn2;
  Conv2d& conv3;
  BatchNorm2d& bn3;
  Sequential& downsample = add<Sequential>("downsample");
};

}  // namespace tern::models
