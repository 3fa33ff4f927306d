#pragma once

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/containers.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// A multi-layer perceptron with ReLU between its layers; flattens x. `layers` are named "0", "1", ... in order: linear
/// layers and, with `norm`, a batch normalisation after each hidden layer. Such a hidden layer has no bias.
struct Mlp final : Layer, SubnetModel {
  struct Options {
    std::vector<int64_t> widths = {4096, 4096, 35};  ///< widths of the input, every hidden layer and the output
    bool norm = false;                               ///< batch normalisation before each ReLU
  };
  explicit Mlp(const Options& options) : hidden_(options.widths.size() - 2), norm_(options.norm) {
    for (size_t i = 0; i + 1 < options.widths.size(); ++i) {
      const bool hidden = i < hidden_;
      layers.append<Linear>({.in = options.widths[i],
                             .out = options.widths[i + 1],
                             .bias = !(hidden && norm_),
                             .relu = hidden && !norm_});
      if (hidden && norm_) layers.append<BatchNorm1d>({.features = options.widths[i + 1], .relu = true});
    }
  }
  Variable forward(const Variable& x) override { return layers(flatten(x)); }

  /// Every hidden layer. There are no filters.
  SubnetPlan subnet_plan(SubnetScope scope) const override {
    SubnetPlan plan;
    if (scope != SubnetScope::fc) return plan;
    const size_t stride = norm_ ? 2 : 1;
    for (size_t i = 0; i < hidden_; ++i) {
      const auto layer = [&](size_t number) { return join({"layers.", number, "."}); };
      const std::string linear = layer(stride * i), next = layer(stride * (i + 1)), norm = layer(stride * i + 1);
      HiddenLayer& neurons = plan.layers.emplace_back(HiddenLayer{join({"hidden layer ", i + 1}), {}});
      neurons.indices = {{linear + "weight", 0}, {next + "weight", 1}};
      if (!norm_) neurons.indices.push_back({linear + "bias", 0});
      for (const char* tensor : {"weight", "bias", "running_mean", "running_var"})
        if (norm_) neurons.indices.push_back({norm + tensor, 0});
    }
    return plan;
  }

  Sequential& layers = add<Sequential>("layers");

 private:
  size_t hidden_;
  bool norm_;
};

/// A perceptron with one hidden layer: 784-h-10 on digits, 4096-h-35 on generated melodies.
const Network& mlp();

}  // namespace tern::networks
