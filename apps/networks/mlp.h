#pragma once

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/containers.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tern/networks/networks.h"

namespace tern::networks {

/// The layers of a perceptron that have batch normalisation behind them. A layer with one has no bias.
enum class MlpNorm : uint8_t {
  all,     ///< hidden layers, before their ReLU, and the output, without weight and bias: the form of IST's code. Each
           ///< logit keeps its size if subnets are joined, although it is the sum of theirs (section 3.3).
  hidden,  ///< hidden layers
  none,
};
constexpr Words<3> words_of(MlpNorm) { return {"all", "hidden", "none"}; }

/// A multi-layer perceptron with ReLU between its layers; flattens x. `layers` are named "0", "1", ... in order: linear
/// layers, each with its batch normalisation behind it if it has one.
struct Mlp final : Layer, SubnetModel {
  struct Options {
    std::vector<int64_t> widths = {4096, 4096, 35};  ///< widths of the input, every hidden layer and the output
    MlpNorm norm = MlpNorm::all;
  };
  explicit Mlp(const Options& options) : hidden_(options.widths.size() - 2), norm_(options.norm != MlpNorm::none) {
    for (size_t i = 0; i + 1 < options.widths.size(); ++i) {
      const bool hidden = i < hidden_, norm = hidden ? norm_ : options.norm == MlpNorm::all;
      layers.append<Linear>(
          {.in = options.widths[i], .out = options.widths[i + 1], .bias = !norm, .relu = hidden && !norm});
      if (norm)
        layers.append<BatchNorm1d>(
            {.features = options.widths[i + 1], .relu = hidden, .weight = hidden, .bias = hidden});
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
  size_t hidden_;  ///< number of hidden layers
  bool norm_;      ///< of hidden layers
};

/// A perceptron with one hidden layer or two: 784-h-10 on digits, 4096-h-35 on generated melodies, 4096-h-30 on spoken
/// words.
const Network& mlp();

}  // namespace tern::networks
