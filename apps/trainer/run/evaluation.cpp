#include "tern/trainer/run/evaluation.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/layers/module.h"
#include "tern/layers/normalization.h"
#include "tern/trainer/run/batch_feed.h"

namespace tern::trainer {
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

std::string first_not_finite(Layer& model, const Variable& x) {
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

void check_finite(double loss, const std::string& when, Layer& model, const Variable& x) {
  if (std::isfinite(loss)) return;
  fail_input({"the loss is ", std::isnan(loss) ? "nan" : "infinite", " ", when, ": not finite first in ",
              first_not_finite(model, x), "; a smaller --lr may help"});
}

void check_finite_state(Module& model, int64_t step) {
  for (const auto& [name, tensor] : model.state())
    check_input(tensor.dtype() != DType::f32 || all_finite(tensor), "the model diverged: ", name,
                " is not finite after step ", step, "; a smaller --lr may help");
}

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor rows = logits.to(Device{}).to(DType::f32);
  const int64_t classes = rows.size(1);
  const float* row = rows.data<float>();
  int64_t correct = 0;
  for (const int64_t label : labels.span<int64_t>()) {
    correct += std::max_element(row, row + classes) - row == label;
    row += classes;
  }
  return correct;
}

Device device_of(Module& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? Device{} : parameters.front().parameter->value().device();
}

void calibrate(Layer& model, DataLoader& loader, DType dtype, int64_t batches) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  loader.start({});
  BatchFeed feed(loader, device_of(model));
  calibrate_batch_statistics(model, [&] {
    if (loader.position().batch == batches) return false;
    const auto batch = feed.next();
    if (batch) model(convert(Variable(batch->images), dtype));
    return batch.has_value();
  });
}

std::optional<Evaluation> evaluate(Layer& model, DataLoader& loader, const EvaluationOptions& options,
                                   const std::string& when, const std::function<bool()>& stop) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  std::optional<BatchStatistics> statistics;
  if (options.batch_statistics) statistics.emplace(model);
  Evaluation found;
  loader.start({});
  BatchFeed feed(loader, device_of(model));
  while (const auto batch = feed.next()) {
    if (stop()) return std::nullopt;
    if (options.batch_statistics && batch->size() == 1) continue;  // a last batch of one image has no statistics
    const Variable x = convert(Variable(batch->images), options.dtype);
    const Variable logits = model(x);
    feed.prefetch();
    const double value = cross_entropy(logits, batch->labels).value().item();
    check_finite(value, when, model, x);
    found.loss_sum += value * static_cast<double>(batch->size());
    found.correct += count_correct(logits.value(), batch->cpu_labels);
    found.images += batch->size();
  }
  return found;
}

}  // namespace tern::trainer
