#include "tern/layers/lstm.h"

#include <cmath>
#include <string>

#include "tern/core/error.h"
#include "tern/layers/initialize.h"

namespace tern {

Lstm::Lstm(const Options& options) {
  check(options.in >= 1 && options.hidden >= 1 && options.layers >= 1 && options.projection >= 0 &&
            options.projection < options.hidden,
        "Lstm: in ", options.in, ", hidden ", options.hidden, ", layers ", options.layers, ", projection ",
        options.projection, ", expected 1 or more, and a projection from 0 to below hidden");
  const double bound = options.range > 0 ? options.range : 1 / std::sqrt(static_cast<double>(options.hidden));
  const int64_t gates = 4 * options.hidden, outputs = options.projection > 0 ? options.projection : options.hidden;
  for (int64_t level = 0; level < options.layers; ++level) {
    const auto add = [&, suffix = "_l" + std::to_string(level)](bool wanted, const char* name, const Shape& shape) {
      return wanted ? &add_parameter(name + suffix, shape, uniform(-bound, bound)) : nullptr;
    };
    Level& added = levels_.emplace_back();
    added.input = add(true, "weight_ih", {gates, level == 0 ? options.in : outputs});
    added.recurrent = add(true, "weight_hh", {gates, outputs});
    added.input_bias = add(options.bias, "bias_ih", {gates});
    added.recurrent_bias = add(options.bias, "bias_hh", {gates});
    added.projection = add(options.projection > 0, "weight_hr", {outputs, options.hidden});
    added.peepholes = add(options.peepholes, "weight_peephole", {3, options.hidden});
  }
}

Lstm::Output Lstm::outputs(const Variable& x, const Tensor& lengths, const std::vector<LstmState>& initial) const {
  check(initial.empty() || initial.size() == levels_.size(), "Lstm: ", initial.size(), " initial states, expected ",
        levels_.size(), ", one for each layer");
  Output output{x, {}};
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    const LstmWeights weights{
        .input = variable_of(level.input),
        .recurrent = variable_of(level.recurrent),
        .bias = level.input_bias ? variable_of(level.input_bias) + variable_of(level.recurrent_bias) : Variable(),
        .projection = variable_of(level.projection),
        .peepholes = variable_of(level.peepholes)};
    const LstmOutput below = lstm(output.y, weights, initial.empty() ? LstmState{} : initial[i], lengths);
    output.y = below.y;
    output.last.push_back(below.last);
  }
  return output;
}

Lstm::Output Lstm::operator()(const Variable& x, const Tensor& lengths, const std::vector<LstmState>& initial) {
  Output output;
  run([&] {
    output = outputs(x, lengths, initial);
    return output.y;
  });
  return output;
}

}  // namespace tern
