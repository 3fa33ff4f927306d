#pragma once

#include "tern/autograd/functional.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/linear.h"
#include "tern/layers/pooling.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// The hidden layer of fc1, or the filters of both convolutions. Each filter of conv2 feeds `pixels` columns of fc1.
inline SubnetPlan lenet_subnet_plan(SubnetScope scope, int64_t pixels) {
  if (scope == SubnetScope::fc) return {{{"fc1", {{"fc1.weight", 0}, {"fc1.bias", 0}, {"fc2.weight", 1}}}}};
  if (scope != SubnetScope::filters) return {};
  return {{{"conv1", {{"conv1.weight", 0}, {"conv1.bias", 0}, {"conv2.weight", 1}}},
           {"conv2", {{"conv2.weight", 0}, {"conv2.bias", 0}, {"fc1.weight", 1, pixels}}}},
          "filters"};
}

/// LeNet as TernGrad trains it (Wen et al., 2017): same padding, 1,256,080 parameters; x [N, 1, 28, 28].
struct LeNet final : Layer, SubnetModel {
  struct Options {};
  explicit LeNet(const Options& = {}) {}

  Variable forward(const Variable& x) override { return fc2(fc1(flatten(pool2(conv2(pool1(conv1(x))))))); }
  SubnetPlan subnet_plan(SubnetScope scope) const override { return lenet_subnet_plan(scope, 7 * 7); }

  Conv2d& conv1 = add<Conv2d>("conv1", {.in = 1,
                                        .out = 20,
                                        .kernel = 5,
                                        .padding = 2,
                                        .relu = true,
                                        .weight_initializer = truncated_normal(0.05),
                                        .bias_initializer = constant(0)});
  MaxPool2d& pool1 = add<MaxPool2d>("pool1");
  Conv2d& conv2 = add<Conv2d>("conv2", {.in = 20,
                                        .out = 50,
                                        .kernel = 5,
                                        .padding = 2,
                                        .relu = true,
                                        .weight_initializer = truncated_normal(0.05),
                                        .bias_initializer = constant(0)});
  MaxPool2d& pool2 = add<MaxPool2d>("pool2");
  Linear& fc1 = add<Linear>("fc1", {.in = 50 * 7 * 7,
                                    .out = 500,
                                    .relu = true,
                                    .weight_initializer = truncated_normal(0.048),
                                    .bias_initializer = constant(0)});
  Linear& fc2 = add<Linear>(
      "fc2", {.in = 500, .out = 10, .weight_initializer = truncated_normal(0.0767), .bias_initializer = constant(0)});
};

/// LeNet as in Caffe's example: valid convolutions without ReLU, 431,080 parameters; x [N, 1, 28, 28].
struct CaffeLeNet final : Layer, SubnetModel {
  struct Options {};
  explicit CaffeLeNet(const Options& = {}) {}

  Variable forward(const Variable& x) override { return fc2(fc1(flatten(pool2(conv2(pool1(conv1(x))))))); }
  SubnetPlan subnet_plan(SubnetScope scope) const override { return lenet_subnet_plan(scope, 4 * 4); }

  /// Caffe's "xavier": uniform with variance 1 / fan-in.
  static Initializer caffe_xavier() { return kaiming_uniform({.slope = 1}); }

  Conv2d& conv1 = add<Conv2d>(
      "conv1",
      {.in = 1, .out = 20, .kernel = 5, .weight_initializer = caffe_xavier(), .bias_initializer = constant(0)});
  MaxPool2d& pool1 = add<MaxPool2d>("pool1");
  Conv2d& conv2 = add<Conv2d>(
      "conv2",
      {.in = 20, .out = 50, .kernel = 5, .weight_initializer = caffe_xavier(), .bias_initializer = constant(0)});
  MaxPool2d& pool2 = add<MaxPool2d>("pool2");
  Linear& fc1 = add<Linear>("fc1", {.in = 50 * 4 * 4,
                                    .out = 500,
                                    .relu = true,
                                    .weight_initializer = caffe_xavier(),
                                    .bias_initializer = constant(0)});
  Linear& fc2 =
      add<Linear>("fc2", {.in = 500, .out = 10, .weight_initializer = caffe_xavier(), .bias_initializer = constant(0)});
};

/// LeNet on handwritten digits.
const Network& lenet();

}  // namespace tern::networks
