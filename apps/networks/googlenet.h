#pragma once

#include <string>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/layers/containers.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/dropout.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/networks/networks.h"
#include "tern/optim/optimizer.h"

namespace tern::networks {

/// A convolution without bias, batch normalisation and ReLU, with torchvision's names. The epsilon is TernGrad's.
struct BasicConv2d final : Layer {
  struct Options {
    int64_t in = 1, out = 1, kernel = 1, stride = 1;  ///< padded by half of the kernel
  };
  explicit BasicConv2d(const Options& o)
      : conv(add<Conv2d>("conv", {.in = o.in,
                                  .out = o.out,
                                  .kernel = o.kernel,
                                  .stride = o.stride,
                                  .padding = o.kernel / 2,
                                  .bias = false,
                                  .weight_initializer = truncated_normal(0.01)})),
        bn(add<BatchNorm2d>("bn", {.features = o.out, .epsilon = 1e-3, .relu = true})) {}
  Variable forward(const Variable& x) override { return bn(conv(x)); }

  Conv2d& conv;
  BatchNorm2d& bn;
};

/// The pooling of an inception module; its windows are 3×3.
enum class InceptionPool : uint8_t {
  max,
  average,   ///< over the pixels of the image: padding does not count
  max_pass,  ///< maximum, and no convolution behind it
};

/// Channels of an inception module's branches, as in the papers' tables. The first convolution of the second and of the
/// third branch is 1×1.
struct InceptionOptions {
  int64_t ones = 0;                        ///< of the 1×1 convolution; 0: there is no such branch
  int64_t threes_reduced = 1, threes = 1;  ///< second branch: of its first convolution, and of the 3×3 convolution
  int64_t wide_reduced = 1, wide = 1;      ///< third branch: of its first convolution, and of those behind it
  int64_t pooled = 0;                      ///< of the 1×1 convolution behind the pooling
  InceptionPool pool = InceptionPool::max;
  int64_t wide_convolutions = 1;  ///< 3×3 convolutions of the third branch
  int64_t stride = 1;             ///< of each branch
};

/// Fills an inception module for `in` input channels. Returns the number of its output channels.
int64_t build_inception(Branches& module, int64_t in, const InceptionOptions& options);

enum class InceptionVariant : uint8_t {
  googlenet,     ///< Szegedy et al., 2015, as TernGrad trains it: with batch normalisation, without auxiliary
                 ///< classifiers, and with 3×3 convolutions in the place of 5×5
  bn_inception,  ///< Ioffe and Szegedy, "Batch normalization", 2015, figure 5, as in QSGD
};
constexpr Words<2> words_of(InceptionVariant) { return {"googlenet", "bn-inception"}; }

/// GoogLeNet with torchvision's names, or BN-Inception; x [N, channels, H, W] with H and W from 32 on. They have
/// 6,624,904 and 11,285,224 parameters for 1000 classes. The table of BN-Inception's paper says 576 channels after
/// modules 4c and 4d, but its branches have 608. Weight decay applies only to the weights of convolutions and of the
/// linear layer.
struct GoogLeNet final : Layer, PartlyDecayed {
  struct Options {
    InceptionVariant variant = InceptionVariant::googlenet;
    int64_t channels = 3, classes = 1000;
    double dropout = 0.2;  ///< dropout ratio before the linear layer
  };
  explicit GoogLeNet(const Options& options)
      : fc(add<Linear>("fc", {.in = add_layers(options),
                              .out = options.classes,
                              .weight_initializer = truncated_normal(0.01),
                              .bias_initializer = constant(0)})),
        dropout(add<Dropout>("dropout", {.probability = options.dropout})) {}

  Variable forward(const Variable& x) override {
    Variable y = x;
    for (Layer* layer : layers) y = (*layer)(y);
    return fc(dropout(flatten(global_average_pool2d(y))));
  }
  bool decays(std::string_view parameter) const override {
    return parameter.ends_with("weight") && parameter.find("bn") == std::string_view::npos;
  }

  std::vector<Layer*> layers;
  Linear& fc;
  Dropout& dropout;

 private:
  /// Adds the stem and the inception modules; returns the number of channels after the last one.
  int64_t add_layers(const Options& options);
};

/// GoogLeNet with TernGrad's recipe (Wen et al., 2017, section 4.2 and Table 3), or BN-Inception.
const Network& googlenet();

}  // namespace tern::networks
