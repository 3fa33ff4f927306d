#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/dropout.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"
#include "tern/optim/optimizer.h"

namespace tern::networks {

struct AlexNetOptions {
  int64_t classes = 1000;
  double dropout = 0.5;  ///< dropout ratio before the last two layers
};

/// AlexNet's first two convolutions, the half on one of Krizhevsky's two GPUs: x [N, 3, 231, 231] to [N, 128, 13, 13].
struct AlexNetTower final : Layer {
  struct Options {};
  explicit AlexNetTower(const Options& = {}) {}

  Variable forward(const Variable& x) override { return pool2(norm2(bn2(conv2(pool1(norm1(bn1(conv1(x)))))))); }

  static Conv2d::Options convolution(int64_t in, int64_t out, int64_t kernel, int64_t groups = 1) {
    return {.in = in,
            .out = out,
            .kernel = kernel,
            .padding = kernel / 2,
            .groups = groups,
            .bias = false,
            .weight_initializer = truncated_normal(0.01)};
  }
  static BatchNorm2d::Options normalization(int64_t features) {
    return {.features = features, .epsilon = 1e-3, .momentum = 3e-4, .relu = true};
  }
  /// Krizhevsky et al., 2012, section 3.3. The paper's alpha, 1e-4, is per square; tern divides alpha by `size`.
  static LocalResponseNormOptions response() { return {.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2}; }

  Conv2d& conv1 = add<Conv2d>("conv1", {.in = 3,
                                        .out = 48,
                                        .kernel = 11,
                                        .stride = 4,
                                        .bias = false,
                                        .spare_channels = true,
                                        .weight_initializer = truncated_normal(0.01)});
  BatchNorm2d& bn1 = add<BatchNorm2d>("bn1", normalization(48));
  LocalResponseNorm& norm1 = add<LocalResponseNorm>("norm1", response());
  MaxPool2d& pool1 = add<MaxPool2d>("pool1", {.window = 3, .stride = 2});
  Conv2d& conv2 = add<Conv2d>("conv2", convolution(48, 128, 5));
  BatchNorm2d& bn2 = add<BatchNorm2d>("bn2", normalization(128));
  LocalResponseNorm& norm2 = add<LocalResponseNorm>("norm2", response());
  MaxPool2d& pool2 = add<MaxPool2d>("pool2", {.window = 3, .stride = 2});
};

/// AlexNet as TernGrad trains it (Wen et al., 2017); x [N, 3, 224, 224]. It has Krizhevsky's two towers, concatenated
/// before the third convolution, and batch normalisation after every convolution. Weight decay applies only to the
/// weights of convolutions and linear layers.
struct AlexNet final : Layer, PartlyDecayed {
  using Options = AlexNetOptions;
  explicit AlexNet(const Options& o)
      : conv3(add<Conv2d>("conv3", AlexNetTower::convolution(256, 384, 3))),
        bn3(add<BatchNorm2d>("bn3", AlexNetTower::normalization(384))),
        conv4(add<Conv2d>("conv4", AlexNetTower::convolution(384, 384, 3, 2))),
        bn4(add<BatchNorm2d>("bn4", AlexNetTower::normalization(384))),
        conv5(add<Conv2d>("conv5", AlexNetTower::convolution(384, 256, 3, 2))),
        bn5(add<BatchNorm2d>("bn5", AlexNetTower::normalization(256))),
        pool5(add<MaxPool2d>("pool5", {.window = 3, .stride = 2})),
        fc6(add<Linear>("fc6", hidden(256 * 6 * 6))),
        dropout6(add<Dropout>("dropout6", {.probability = o.dropout})),
        fc7(add<Linear>("fc7", hidden(4096))),
        dropout7(add<Dropout>("dropout7", {.probability = o.dropout})),
        fc8(add<Linear>("fc8", {.in = 4096,
                                .out = o.classes,
                                .weight_initializer = truncated_normal(0.01),
                                .bias_initializer = constant(0)})) {}

  Variable forward(const Variable& x) override {
    // TensorFlow's "same" padding for a kernel of 11 and a stride of 4 at 224 pixels.
    const Variable padded = pad(x, {{}, {}, {.before = 3, .after = 4}, {.before = 3, .after = 4}});
    const Variable y = bn3(conv3(concat({tower1(padded), tower2(padded)}, 1)));
    const Variable features = pool5(bn5(conv5(bn4(conv4(y)))));
    return fc8(dropout7(fc7(dropout6(fc6(flatten(features))))));
  }

  bool decays(std::string_view parameter) const override {
    return parameter.ends_with("weight") && parameter.find("bn") == std::string_view::npos;
  }

  AlexNetTower& tower1 = add<AlexNetTower>("tower1");
  AlexNetTower& tower2 = add<AlexNetTower>("tower2");
  Conv2d& conv3;
  BatchNorm2d& bn3;
  Conv2d& conv4;
  BatchNorm2d& bn4;
  Conv2d& conv5;
  BatchNorm2d& bn5;
  MaxPool2d& pool5;
  Linear& fc6;
  Dropout& dropout6;
  Linear& fc7;
  Dropout& dropout7;
  Linear& fc8;

 private:
  static Linear::Options hidden(int64_t in) {
    return {.in = in,
            .out = 4096,
            .relu = true,
            .weight_initializer = truncated_normal(0.005),
            .bias_initializer = constant(0.1)};
  }
};

/// The convolutions of one-tower AlexNet (Krizhevsky, 2014), with torchvision's names.
struct AlexNetFeatures final : Layer {
  struct Options {};
  explicit AlexNetFeatures(const Options& = {}) {}

  Variable forward(const Variable& x) override { return pool5(conv5(conv4(conv3(pool2(conv2(pool1(conv1(x)))))))); }

  Conv2d& conv1 = add<Conv2d>(
      "0", {.in = 3, .out = 64, .kernel = 11, .stride = 4, .padding = 2, .relu = true, .spare_channels = true});
  MaxPool2d& pool1 = add<MaxPool2d>("2", {.window = 3, .stride = 2});
  Conv2d& conv2 = add<Conv2d>("3", {.in = 64, .out = 192, .kernel = 5, .padding = 2, .relu = true});
  MaxPool2d& pool2 = add<MaxPool2d>("5", {.window = 3, .stride = 2});
  Conv2d& conv3 = add<Conv2d>("6", {.in = 192, .out = 384, .kernel = 3, .padding = 1, .relu = true});
  Conv2d& conv4 = add<Conv2d>("8", {.in = 384, .out = 256, .kernel = 3, .padding = 1, .relu = true});
  Conv2d& conv5 = add<Conv2d>("10", {.in = 256, .out = 256, .kernel = 3, .padding = 1, .relu = true});
  MaxPool2d& pool5 = add<MaxPool2d>("12", {.window = 3, .stride = 2});
};

/// The classifier of one-tower AlexNet.
struct AlexNetClassifier final : Layer {
  using Options = AlexNetOptions;
  explicit AlexNetClassifier(const Options& o)
      : dropout1(add<Dropout>("0", {.probability = o.dropout})),
        fc1(add<Linear>("1", {.in = 256 * 6 * 6, .out = 4096, .relu = true})),
        dropout2(add<Dropout>("3", {.probability = o.dropout})),
        fc2(add<Linear>("4", {.in = 4096, .out = 4096, .relu = true})),
        fc3(add<Linear>("6", {.in = 4096, .out = o.classes})) {}

  Variable forward(const Variable& x) override { return fc3(fc2(dropout2(fc1(dropout1(flatten(x)))))); }

  Dropout& dropout1;
  Linear& fc1;
  Dropout& dropout2;
  Linear& fc2;
  Linear& fc3;
};

/// AlexNet in one tower (Krizhevsky, "One weird trick", 2014) with torchvision's names and initial values. It has
/// 61,100,840 parameters for 1000 classes; x [N, 3, 224, 224].
struct OneTowerAlexNet final : Layer {
  using Options = AlexNetOptions;
  explicit OneTowerAlexNet(const Options& options) : classifier(add<AlexNetClassifier>("classifier", options)) {}
  Variable forward(const Variable& x) override { return classifier(features(x)); }

  AlexNetFeatures& features = add<AlexNetFeatures>("features");
  AlexNetClassifier& classifier;
};

/// AlexNet with TernGrad's recipe (Wen et al., 2017, section 4.2 and Table 2).
const Network& alexnet();

}  // namespace tern::networks
