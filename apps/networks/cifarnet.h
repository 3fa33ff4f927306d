#pragma once

#include "tern/autograd/functional.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"
#include "tern/optim/optimizer.h"

namespace tern::networks {

/// CifarNet as TernGrad trains it (Wen et al., 2017); x [N, channels, height, width]. It has 1,068,298 parameters for
/// colour crops of 24×24. Weight decay applies only to the weights of fc1 and fc2.
struct CifarNet final : Layer, SubnetModel, PartlyDecayed {
  struct Options {
    int64_t channels = 3, height = 24, width = 24;
    int64_t classes = 10;
  };
  explicit CifarNet(const Options& o)
      : conv1(add<Conv2d>("conv1", convolution(o.channels, 0))),
        pool1(add<MaxPool2d>("pool1", pooling())),
        norm1(add<LocalResponseNorm>("norm1", normalization())),
        conv2(add<Conv2d>("conv2", convolution(64, 0.1))),
        norm2(add<LocalResponseNorm>("norm2", normalization())),
        pool2(add<MaxPool2d>("pool2", pooling())),
        fc1(add<Linear>("fc1", hidden(64 * pooled(o.height) * pooled(o.width), 384))),
        fc2(add<Linear>("fc2", hidden(384, 192))),
        fc3(add<Linear>("fc3", {.in = 192,
                                .out = o.classes,
                                .weight_initializer = truncated_normal(1.0 / 192),
                                .bias_initializer = constant(0)})) {}

  Variable forward(const Variable& x) override {
    const Variable y = pool2(norm2(conv2(norm1(pool1(conv1(x))))));
    return fc3(fc2(fc1(flatten(y))));
  }

  bool decays(std::string_view parameter) const override {
    return parameter == "fc1.weight" || parameter == "fc2.weight";
  }
  /// Both hidden layers. The filters are not independent of each other, because each normalisation sums over nine of
  /// them.
  SubnetPlan subnet_plan(SubnetScope scope) const override {
    if (scope != SubnetScope::fc) return {};
    return {{{"fc1", {{"fc1.weight", 0}, {"fc1.bias", 0}, {"fc2.weight", 1}}},
             {"fc2", {{"fc2.weight", 0}, {"fc2.bias", 0}, {"fc3.weight", 1}}}}};
  }

  Conv2d& conv1;
  MaxPool2d& pool1;
  LocalResponseNorm& norm1;
  Conv2d& conv2;
  LocalResponseNorm& norm2;
  MaxPool2d& pool2;
  Linear& fc1;
  Linear& fc2;
  Linear& fc3;

 private:
  static Conv2d::Options convolution(int64_t in, double bias) {
    return {.in = in,
            .out = 64,
            .kernel = 5,
            .padding = 2,
            .relu = true,
            .weight_initializer = truncated_normal(0.05),
            .bias_initializer = constant(bias)};
  }
  static Linear::Options hidden(int64_t in, int64_t out) {
    return {.in = in,
            .out = out,
            .relu = true,
            .weight_initializer = truncated_normal(0.04),
            .bias_initializer = constant(0.1)};
  }
  /// TensorFlow's radius 4, and alpha 0.001/9 per square.
  static LocalResponseNormOptions normalization() { return {.size = 9, .alpha = 0.001, .beta = 0.75, .k = 1}; }
  /// TensorFlow's "same" padding for even sizes: counts a window that the edge cuts.
  static MaxPool2d::Options pooling() { return {.window = 3, .stride = 2, .ceil_mode = true}; }
  /// The size that remains of `extent` after both poolings.
  static int64_t pooled(int64_t extent) { return extent / 4; }
};

/// CifarNet with TernGrad's recipe (Wen et al., 2017, section 4.1 and Table 1).
const Network& cifarnet();

}  // namespace tern::networks
