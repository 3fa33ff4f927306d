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
  int64_t in = 1, width = 1, stride = 1;  ///< `width`: channels of the 3×3 convolution, if inner_divisor is 1
  Shortcut shortcut = Shortcut::projection;
  int64_t inner_divisor = 1, branch_divisor = 1;  ///< see ResNet::Options

  /// Channels between the convolutions.
  int64_t inner() const { return width / inner_divisor; }

  /// Whether the shortcut of a block with `out` output channels leaves x as it is.
  bool passes_x(int64_t out) const { return stride == 1 && in == out; }
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
  if (options.passes_x(out)) return;
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

/// The end of a block: relu(last(branch) + shortcut). An evaluation divides last(branch) by `divisor`.
inline Variable join_branch(BatchNorm2d& last, const Variable& branch, const Variable& shortcut, int64_t divisor) {
  if (divisor == 1 || last.training()) return last(branch, shortcut);
  const auto d = static_cast<double>(divisor);
  return last(branch, d * shortcut) / d;  // relu(d · z) = d · relu(z)
}

/// Two 3×3 convolutions and a shortcut (He et al., 2016, figure 2). The second normalisation also adds the shortcut. A
/// block whose tensors have no rows is its shortcut: it is not part of this subnet.
struct BasicBlock final : Layer {
  using Options = BlockOptions;
  static constexpr int64_t kExpansion = 1;  ///< output channels of the block, per channel of its width

  explicit BasicBlock(const Options& o)
      : conv1(add<Conv2d>("conv1", residual_convolution(o.in, o.inner(), 3, o.stride))),
        bn1(add<BatchNorm2d>("bn1", {.features = o.inner(), .relu = true})),
        conv2(add<Conv2d>("conv2", residual_convolution(o.inner(), o.width, 3))),
        bn2(add<BatchNorm2d>("bn2", {.features = o.width, .relu = true})),
        branch_divisor(o.passes_x(o.width) ? o.branch_divisor : 1) {
    build_shortcut(downsample, o, o.width);
  }
  Variable forward(const Variable& x) override {
    if (conv1.weight.value().size(0) == 0) return x;
    return join_branch(bn2, conv2(bn1(conv1(x))), downsample(x), branch_divisor);
  }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Conv2d& conv2;
  BatchNorm2d& bn2;
  Sequential& downsample = add<Sequential>("downsample");
  const int64_t branch_divisor;
};

/// A 3×3 convolution between two 1×1 convolutions (figure 5). The 3×3 convolution has the stride, as in torchvision. A
/// block whose tensors have no rows is its shortcut.
struct Bottleneck final : Layer {
  using Options = BlockOptions;
  static constexpr int64_t kExpansion = 4;

  explicit Bottleneck(const Options& o)
      : conv1(add<Conv2d>("conv1", residual_convolution(o.in, o.inner(), 1))),
        bn1(add<BatchNorm2d>("bn1", {.features = o.inner(), .relu = true})),
        conv2(add<Conv2d>("conv2", residual_convolution(o.inner(), o.inner(), 3, o.stride))),
        bn2(add<BatchNorm2d>("bn2", {.features = o.inner(), .relu = true})),
        conv3(add<Conv2d>("conv3", residual_convolution(o.inner(), kExpansion * o.width, 1))),
        bn3(add<BatchNorm2d>("bn3", {.features = kExpansion * o.width, .relu = true})),
        branch_divisor(o.passes_x(kExpansion * o.width) ? o.branch_divisor : 1) {
    build_shortcut(downsample, o, kExpansion * o.width);
  }
  Variable forward(const Variable& x) override {
    if (conv1.weight.value().size(0) == 0) return x;
    return join_branch(bn3, conv3(bn2(conv2(bn1(conv1(x))))), downsample(x), branch_divisor);
  }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Conv2d& conv2;
  BatchNorm2d& bn2;
  Conv2d& conv3;
  BatchNorm2d& bn3;
  Sequential& downsample = add<Sequential>("downsample");
  const int64_t branch_divisor;
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
    /// A divisor of the width. The channels between the convolutions of every block are the paper's divided by this: a
    /// subnet of filters, with this number of workers (IST).
    int64_t inner_divisor = 1;
    /// In an evaluation, the branch of a block whose shortcut changes nothing counts 1/branch_divisor. This is for
    /// subnets that have 1/branch_divisor of these blocks each (ResIST).
    int64_t branch_divisor = 1;
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

  /// `filters`: the inner channels of every block. `blocks`: the blocks whose shortcut changes nothing. There is no
  /// hidden fully connected layer.
  SubnetPlan subnet_plan(SubnetScope scope) const override {
    SubnetPlan plan = {.units = scope == SubnetScope::filters ? "filters" : "residual blocks"};
    const int convolutions = stages.bottleneck ? 3 : 2;
    if (scope == SubnetScope::filters)
      for (const auto& [name, passes_x] : blocks)
        for (int first = 1; first < convolutions; ++first) plan.layers.push_back(inner_channels(name, first));
    if (scope != SubnetScope::blocks) return plan;
    HiddenLayer whole{"the model", {}};
    int64_t count = 0;
    for (const auto& [name, passes_x] : blocks) {
      if (!passes_x) continue;
      for (int i = 1; i <= convolutions; ++i) {
        whole.indices.push_back({.tensor = join({name, ".conv", i, ".weight"}), .neuron = count});
        for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
          whole.indices.push_back({.tensor = join({name, ".bn", i, ".", tensor}), .neuron = count});
      }
      ++count;
    }
    if (count > 0) plan.layers.push_back(std::move(whole));
    return plan;
  }

  struct BlockName {
    std::string name;
    bool passes_x;  ///< whether the shortcut changes nothing
  };

  const ResNetStages stages;
  Conv2d& conv1;
  BatchNorm2d& bn1;
  Sequential& maxpool = add<Sequential>("maxpool");  ///< empty with the CIFAR stem
  std::vector<Sequential*> layers;
  std::vector<BlockName> blocks;
  Linear& fc;

 private:
  static ResNetStages stages_of(const Options& options) {
    ResNetStages found = ResNetStages::of_depth(options.depth);
    found.width = options.width.value_or(found.width);
    check_input(options.inner_divisor >= 1 && found.width % options.inner_divisor == 0, "ResNet: found inner divisor ",
                options.inner_divisor, ", expected a divisor of the width ", found.width);
    return found;
  }
  Conv2d::Options stem_convolution(const Options& options) const {
    const bool wide = options.stem == Stem::imagenet;
    Conv2d::Options stem = residual_convolution(options.channels, stages.width, wide ? 7 : 3, wide ? 2 : 1);
    stem.spare_channels = true;
    return stem;
  }

  /// Adds the stages to `layers`; returns the number of channels after the last one.
  int64_t add_layers(const Options& options);

  /// Adds a stage. Changes `block` to the options of the next block.
  template <class Block>
  void append_blocks(int64_t count, BlockOptions& block) {
    const std::string name = join({"layer", layers.size() + 1});
    Sequential& layer = *layers.emplace_back(&add<Sequential>(name));
    for (int64_t i = 0; i < count; ++i) {
      layer.append<Block>(block);
      blocks.push_back({join({name, ".", i}), block.passes_x(Block::kExpansion * block.width)});
      block.in = Block::kExpansion * block.width;
      block.stride = 1;
    }
  }
};

inline int64_t ResNet::add_layers(const Options& options) {
  if (options.stem == Stem::imagenet) maxpool.append<MaxPool2d>({.window = 3, .stride = 2, .padding = 1});
  const Shortcut usual = stages.blocks.size() == 3 ? Shortcut::identity : Shortcut::projection;
  BlockOptions block{.in = stages.width,
                     .width = stages.width,
                     .shortcut = options.shortcut.value_or(usual),
                     .inner_divisor = options.inner_divisor,
                     .branch_divisor = options.branch_divisor};
  for (const int64_t count : stages.blocks) {
    if (stages.bottleneck)
      append_blocks<Bottleneck>(count, block);
    else
      append_blocks<BasicBlock>(count, block);
    block.width *= 2;
    block.stride = 2;
  }
  return block.in;
}

/// Residual networks with He et al.'s recipe (2016, section 4.2; section 3.4 for images above 224×224).
const Network& resnet();

}  // namespace tern::networks
