#include "tern/apps/trainer/diagnosis.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"

namespace tern {
namespace {

bool all_finite(const Tensor& tensor) {
  return std::ranges::all_of(tensor.to_vector<float>(), [](float value) { return std::isfinite(value); });
}

std::string describe(const std::string& layer, Module& module) {
  std::string text = layer.empty() ? "the model's output" : join({"the output of layer '", layer, "'"});
  for (const auto& [name, parameter] : module.parameters())
    if (!all_finite(parameter->value())) return text + join({", whose ", name, " is no longer finite"});
  return text;
}

}  // namespace

std::string first_not_finite(Module& model, const Variable& x) {
  if (!all_finite(x.value())) return "the images";
  std::string found;
  const auto modules = model.modules();
  for (const auto& [name, module] : modules)
    module->on_output([&found, layer = name, module = module](const Variable& y) {
      if (found.empty() && !all_finite(y.value())) found = describe(layer, *module);
    });
  const NoGradient no_gradient;
  model(x);
  for (const auto& [name, module] : modules) module->on_output({});
  return found.empty() ? "the loss" : found;
}

void check_finite(double loss, const std::string& when, Module& model, const Variable& x) {
  if (std::isfinite(loss)) return;
  fail_input({"the loss is ", std::isnan(loss) ? "nan" : "infinite", " ", when, ": not finite first in ",
              first_not_finite(model, x), "; a smaller --lr may help"});
}

void check_finite_state(Module& model, int64_t step) {
  for (const auto& [name, tensor] : model.state())
    check_input(tensor.dtype() != DType::f32 || all_finite(tensor), "the model diverged: ", name,
                " is not finite after step ", step, "; a smaller --lr may help");
}

}  // namespace tern
