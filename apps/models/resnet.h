#pragma once

#include "tern/autograd/layout.h"
#include "tern/dist/subnet_plan.h"
#include "tern/layers/batch_norm.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/pooling.h"
#include "tern/layers/sequential.h"

namespace tern::models {

/// Two 3×3 convolutions around a shortcut (He et al., 2016, figure 2), named as torchvision's; the second
/// normalisation adds the shortcut in its own pass.
struct BasicBlock final : Module {
  struct Options {
    int64_t in = 1, out = 1, stride = 1;
  };
  static Conv2d::Options convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    return {.in = in,
            .out = out,
            .kernel = kernel,
            .stride = stride,
            .padding = kernel / 2,
            .bias = false,
            .weight_initializer = kaiming_normal({.fan = Fan::out})};
  }

  explicit BasicBlock(const Options& options)
      : conv1(add<Conv2d>("conv1", convolution(options.in, options.out, 3, options.stride))),
        bn1(add<BatchNorm2d>("bn1", {.features = options.out, .relu = true})),
        conv2(add<Conv2d>("conv2", convolution(options.out, options.out, 3, 1))),
        bn2(add<BatchNorm2d>("bn2", {.features = options.out, .relu = true})),
        downsample(add<Sequential>("downsample")) {
    if (options.stride == 1 && options.in == options.out) return;
    downsample.append<Conv2d>(convolution(options.in, options.out, 1, options.stride))
        .append<BatchNorm2d>({.features = options.out});
  }
  Variable forward(const Variable& x) override { return bn2(conv2(bn1(conv1(x))), downsample(x)); }

  /// The channels between the two convolutions of the block called `name`.
  static HiddenLayer inner_channels(const std::string& name) {
    HiddenLayer channels{name, {{name + ".conv1.weight", 0}, {name + ".conv2.weight", 1}}};
    for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
      channels.indices.push_back({name + ".bn1." + tensor, 0});
    return channels;
  }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Conv2d& conv2;
  BatchNorm2d& bn2;
  Sequential& downsample;
};

/// ResNet-18 for CIFAR: torchvision's with a 3×3 stem of stride 1 and no pooling after it; x [N, 3, 32, 32].
struct ResNet18 final : Module, SubnetModel {
  struct Options {
    int64_t classes = 10;
    int64_t width = 64;  ///< channels of the stem; the last stage has eight times as many
  };
  explicit ResNet18(const Options& options)
      : conv1(add<Conv2d>("conv1", BasicBlock::convolution(3, options.width, 3, 1))),
        bn1(add<BatchNorm2d>("bn1", {.features = options.width, .relu = true})),
        fc(add<Linear>("fc", {.in = 8 * options.width, .out = options.classes})) {
    int64_t in = options.width;
    for (Sequential* layer : {&layer1, &layer2, &layer3, &layer4}) {
      const int64_t out = layer == &layer1 ? in : 2 * in;
      layer->append<BasicBlock>({.in = in, .out = out, .stride = out / in});
      layer->append<BasicBlock>({.in = out, .out = out});
      in = out;
    }
  }
  Variable forward(const Variable& x) override {
    return fc(flatten(pool(layer4(layer3(layer2(layer1(bn1(conv1(x)))))))));
  }

  /// The inner channels of every block; nothing fully connected is hidden.
  SubnetPlan subnet_plan(SubnetScope scope) const override {
    SubnetPlan plan;
    if (scope != SubnetScope::filters) return plan;
    for (const char* layer : {"layer1", "layer2", "layer3", "layer4"})
      for (const char* block : {".0", ".1"})
        plan.layers.push_back(BasicBlock::inner_channels(std::string(layer) + block));
    return plan;
  }

  Conv2d& conv1;
  BatchNorm2d& bn1;
  Sequential& layer1 = add<Sequential>("layer1");
  Sequential& layer2 = add<Sequential>("layer2");
  Sequential& layer3 = add<Sequential>("layer3");
  Sequential& layer4 = add<Sequential>("layer4");
  GlobalAvgPool2d& pool = add<GlobalAvgPool2d>("pool");
  Linear& fc;
};

}  // namespace tern::models
