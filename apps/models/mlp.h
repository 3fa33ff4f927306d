#pragma once

#include "tern/autograd/layout.h"
#include "tern/layers/linear.h"
#include "tern/layers/sequential.h"

namespace tern::models {

/// A multi-layer perceptron with ReLU between its layers, named "layers.0", "layers.1", ...; x is flattened.
struct Mlp final : Module {
  struct Options {
    std::vector<int64_t> widths = {4096, 4096, 35};  ///< of the input, every hidden layer and the output
  };
  explicit Mlp(const Options& options) {
    for (size_t i = 0; i + 1 < options.widths.size(); ++i)
      layers.append<Linear>(
          {.in = options.widths[i], .out = options.widths[i + 1], .relu = i + 2 < options.widths.size()});
  }
  Variable forward(const Variable& x) override { return layers(flatten(x)); }

  Sequential& layers = add<Sequential>("layers");
};

}  // namespace tern::models
