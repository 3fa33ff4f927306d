#pragma once

#include <optional>
#include <vector>

#include "tern/apps/models/residual_block.h"
#include "tern/core/error.h"
#include "tern/layers/linear.h"
#include "tern/layers/pooling.h"

namespace tern::models {

/// What stands before the first block.
enum class Stem : uint8_t {
  cifar,     ///< a 3×3 convolution
  imagenet,  ///< a 7×7 convolution of stride 2, then pooling of stride 2
};

/// The stages of a residual network.
struct ResNetStages {
  int64_t width;  ///< channels of the stem and of the first stage's 3×3 convolutions; each stage doubles them
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

/// A residual network (He et al., 2016), named as torchvision's; x [N, channels, H, W]. Depths 18, 50 and 152 are those
/// of table 1, the others those of section 4.2.
struct ResNet final : Module, SubnetModel {
  struct Options {
    int64_t depth = 20;
    std::optional<int64_t> width = {};  ///< see ResNetStages; unset: the paper's
    int64_t channels = 3;
    int64_t classes = 10;
    Stem stem = Stem::cifar;
    std::optional<Shortcut> shortcut = {};  ///< unset: as the paper has it, option A where there are three stages
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

  /// The inner channels of every block; nothing fully connected is hidden.
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
  Sequential& maxpool = add<Sequential>("maxpool");  ///< empty in the stem for CIFAR
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

  /// Appends them to `layers`, and returns the channels that they end with.
  int64_t add_layers(const Options& options);

  /// `block` becomes what follows them.
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

}  // namespace tern::models
