#pragma once

#include <optional>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/containers.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// How a shortcut changes the number of channels (He et al., 2016, section 4.2).
enum class Shortcut : uint8_t {
  identity,    ///< option A: skips pixels by the stride; new channels are zero
  projection,  ///< option B: a 1×1 convolution with batch normalisation
};

struct BlockOptions {
  int64_t in = 1, width = 1, stride = 1;  ///< `width`: channels of the 3×3 convolution
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

/// Takes every `stride`-th pixel and adds channels of zeros, half of them before and half after the others.
struct ZeroPaddedShortcut final : Layer {
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

/// Builds the shortcut of a block with `out` output channels. It stays empty if x passes unchanged.
inline void build_shortcut(Sequential& shortcut, const BlockOptions& options, int64_t out) {
  if (options.stride == 1 && options.in == out) return;
  if (options.shortcut == Shortcut::identity) {
    shortcut.append<ZeroPaddedShortcut>({.channels = out, .stride = options.stride});
    return;
  }
  shortcut.append<Conv2d>(residual_convolution(options.in, out, 1, options.stride))
      .append<BatchNorm2d>({.features = out});
}

/// The channels between two convolutions of the block `block`, with their normalisation.
inline HiddenLayer inner_channels(const std::string& block, int first) {
  const auto layer = [&](const char* kind, int number) { return join({block, ".", kind, number, "."}); };
  HiddenLayer channels{block, {{layer("conv", first) + "weight", 0}, {layer("conv", first + 1) + "weight", 1}}};
  for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
    channels.indices.push_back({layer("bn", first) + tensor, 0});
  return channels;
}

/// Two 3×3 convolutions and a shortcut (He et al., 2016, figure 2). The second normalisation also adds the shortcut.
struct BasicBlock final : Layer {
  using Options = BlockOptions;
  static constexpr int64_t kExpansion = 1;  ///< output channels of the block, per channel of its width

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

/// A 3×3 convolution between two 1×1 convolutions (figure 5). The 3×3 convolution has the stride, as in torchvision.
struct Bottleneck final : Layer {
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

/// The layers before the first block.
enum class Stem : uint8_t {
  cifar,     ///< a 3×3 convolution
  imagenet,  ///< a 7×7 convolution with stride 2, then max pooling with stride 2
};
constexpr Words<2> words_of(Stem) { return {"cifar", "imagenet"}; }

/// The stages of a residual network.
struct ResNetStages {
  int64_t width;  ///< channels of the stem and of the first stage's 3×3 convolutions; doubles in each stage
  std::vector<int64_t> blocks;
  bool bottleneck = false;

  static ResNetStages of_depth(int64_t depth) {
    switch (depth) {
      case 18: return {64, {2, 2, 2, 2}};
      case 50: return {64, {3, 4, 6, 3}, true};
      case 152: return {64, {3, 8, 36, 3}, true};
      case 20:
      case 32:
      case 44:
      case 56:
      case 110: return {16, std::vector<int64_t>(3, (depth - 2) / 6)};
      default: fail_input({"ResNet: found depth ", depth, ", expected 18, 20, 32, 44, 50, 56, 110 or 152"});
    }
  }
};

/// A residual network (He et al., 2016) with torchvision's names; x [N, channels, H, W]. Depths 18, 50 and 152 are
/// those of table 1, the others those of section 4.2.
struct ResNet final : Layer, SubnetModel {
  struct Options {
    int64_t depth = 20;
    std::optional<int64_t> width = {};  ///< see ResNetStages; unset: as in the paper
    int64_t channels = 3;
    int64_t classes = 10;
    Stem stem = Stem::cifar;
    std::optional<Shortcut> shortcut = {};  ///< unset: as in the paper, option A for three stages
  };

  explicit ResNet(const Options& options)
      : stages(stages_of(options)),
        conv1(add<Conv2d>("conv1", stem_convolution(options))),
        bn1(add<BatchNorm2d>("bn1", {.features = stages.width, .relu = true})),
        fc(add<Linear>("fc", {.in = add_layers(options), .out = options.classes})) {}

  Variable forward(const Variable& x) override {
    Variable y = maxpool(bn1(conv1(x)));
    for (Sequential* layer : layers) y = (*layer)(y);
    return fc(flatten(global_average_pool2d(y)));
  }

  /// The inner channels of every block. There is no hidden fully connected layer.
  SubnetPlan subnet_plan(SubnetScope scope) const override {
    SubnetPlan plan;
    if (scope != SubnetScope::filters) return plan;
    const int convolutions = stages.bottleneck ? 3 : 2;
    for (size_t i = 0; i < stages.blocks.size(); ++i)
      for (int64_t block = 0; block < stages.blocks[i]; ++block)
        for (int first = 1; first < convolutions; ++first)
          plan.layers.push_back(inner_channels(join({layer_name(i), ".", block}), first));
    return plan;
  }

  const ResNetStages stages;
  Conv2d& conv1;
  BatchNorm2d& bn1;
  Sequential& maxpool = add<Sequential>("maxpool");  ///< empty with the CIFAR stem
  std::vector<Sequential*> layers;
  Linear& fc;

 private:
  static ResNetStages stages_of(const Options& options) {
    ResNetStages found = ResNetStages::of_depth(options.depth);
    found.width = options.width.value_or(found.width);
    return found;
  }
  static std::string layer_name(size_t i) { return join({"layer", i + 1}); }

  Conv2d::Options stem_convolution(const Options& options) const {
    const bool wide = options.stem == Stem::imagenet;
    return residual_convolution(options.channels, stages.width, wide ? 7 : 3, wide ? 2 : 1);
  }

  /// Adds the stages to `layers`; returns the number of channels after the last one.
  int64_t add_layers(const Options& options);

  /// Changes `block` to the options of the next block.
  template <class Block>
  static void append_blocks(Sequential& layer, int64_t count, BlockOptions& block) {
    for (int64_t i = 0; i < count; ++i) {
      layer.append<Block>(block);
      block.in = Block::kExpansion * block.width;
      block.stride = 1;
    }
  }
};

inline int64_t ResNet::add_layers(const Options& options) {
  if (options.stem == Stem::imagenet) maxpool.append<MaxPool2d>({.window = 3, .stride = 2, .padding = 1});
  const Shortcut usual = stages.blocks.size() == 3 ? Shortcut::identity : Shortcut::projection;
  BlockOptions block{.in = stages.width, .width = stages.width, .shortcut = options.shortcut.value_or(usual)};
  for (const int64_t count : stages.blocks) {
    auto& layer = *layers.emplace_back(&add<Sequential>(layer_name(layers.size())));
    if (stages.bottleneck)
      append_blocks<Bottleneck>(layer, count, block);
    else
      append_blocks<BasicBlock>(layer, count, block);
    block.width *= 2;
    block.stride = 2;
  }
  return block.in;
}

/// Residual networks with He et al.'s recipe (2016, section 4.2; section 3.4 for images above 224×224).
const Network& resnet();

}  // namespace tern::networks
