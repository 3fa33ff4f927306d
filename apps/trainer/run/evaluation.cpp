#include "tern/trainer/run/evaluation.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/kernels/loss.h"
#include "tern/layers/module.h"
#include "tern/layers/normalization.h"
#include "tern/trainer/run/batch_feed.h"

namespace tern::trainer {
namespace {

bool all_finite(const Tensor& tensor) {
  const auto finite = [](float value) { return std::isfinite(value); };
  const bool here = tensor.dtype() == DType::f32 && tensor.device() == Device{};  // then read it without a copy
  return here ? std::ranges::all_of(tensor.span<float>(), finite)
              : std::ranges::all_of(tensor.to_vector<float>(), finite);
}

std::string describe(const std::string& layer, Module& module) {
  std::string text = layer.empty() ? "the model's output" : join({"the output of layer '", layer, "'"});
  for (const auto& [name, parameter] : module.parameters())
    if (!all_finite(parameter->value())) return text + join({", whose ", name, " is no longer finite"});
  return text;
}

/// The row of the batch that has the element `at` of its tensor `name`, in row-major order.
int64_t row_of(const Batch& batch, const std::string& name, int64_t at) {
  const std::string offsets = name.substr(0, name.rfind('.')) + ".offsets";
  if (!name.ends_with(".values") || !batch.has(offsets)) return at / (batch[name].numel() / batch.size());
  const auto ends = batch[offsets].to_vector<int64_t>();
  return std::ranges::upper_bound(ends, at) - ends.begin() - 1;
}

/// Throws InputError, which begins with `found`, if a floating field of the batch has an element that is not finite.
void check_finite_fields(const std::string& found, const DeviceBatch& batch) {
  for (const auto& [name, tensor] : batch.on_device().tensors()) {
    if (!is_floating(tensor.dtype())) continue;
    const auto values = tensor.to_vector<double>();
    const auto bad = std::ranges::find_if_not(values, [](double value) { return std::isfinite(value); });
    if (bad == values.end()) continue;
    fail_input({found, "; ", batch.sample_name(row_of(batch.on_device(), name, bad - values.begin())), ": field '",
                name, "' has the value ", *bad, ", expected finite numbers"});
  }
}

}  // namespace

std::string first_not_finite(Module& model, const Task& task, const DeviceBatch& batch) {
  std::string found;
  const auto modules = model.modules();
  for (const auto& [name, module] : modules)
    module->on_output([&found, layer = name, module = module](const Variable& y) {
      if (found.empty() && !all_finite(y.value())) found = describe(layer, *module);
    });
  const NoGradient no_gradient;
  try {
    task.forward(model, batch);
  } catch (...) {
    for (const auto& [name, module] : modules) module->on_output({});
    throw;
  }
  for (const auto& [name, module] : modules) module->on_output({});
  return found.empty() ? "the loss" : found;
}

void check_finite(double loss, const std::string& when, Module& model, const Task& task, const DeviceBatch& batch,
                  bool is_of_batch) {
  if (std::isfinite(loss)) return;
  const std::string found = join({"the loss is ", std::isnan(loss) ? "nan" : "infinite", " ", when});
  if (is_of_batch) check_finite_fields(found, batch);
  fail_input({found, "; the first value that is not finite is in ", first_not_finite(model, task, batch),
              "; a smaller --lr may help"});
}

void check_finite_state(Module& model, int64_t step) {
  for (const auto& [name, tensor] : model.state())
    check_input(tensor.dtype() != DType::f32 || all_finite(tensor), "the model diverged: ", name,
                " is not finite after step ", step, "; a smaller --lr may help");
}

namespace {

/// Runs `pass`, and names the sample if it has a wrong label.
template <class Pass>
auto run_naming_sample(const DeviceBatch& batch, const Pass& pass) {
  try {
    return pass();
  } catch (const kernels::LabelError& error) {
    // If there are other labels than one per sample, such as those of frames, the row does not tell the sample.
    if (error.rows != batch.size()) fail_input({"data set '", batch.data(), "': ", error.what()});
    fail_input({batch.sample_name(error.row), ": ", error.reason});
  }
}

}  // namespace

Forward forward_pass(const Task& task, Module& model, const DeviceBatch& batch) {
  return run_naming_sample(batch, [&] { return task.forward(model, batch); });
}

std::vector<Ratio> count_scores(const Task& task, std::span<const Tensor> outputs, const Batch& batch) {
  std::vector<Tensor> on_cpu;
  for (const Tensor& output : outputs) on_cpu.push_back(output.to(Device{}));
  auto counted = task.count(on_cpu, batch);
  const std::vector<Score> scores = task.scores();
  check(counted.size() == scores.size(), "the task counts ", counted.size(), " scores and names ", scores.size());
  for (size_t i = 0; i < counted.size(); ++i)
    check(std::isfinite(counted[i].numerator) && std::isfinite(counted[i].denominator), "the task counts ",
          counted[i].numerator, " of ", counted[i].denominator, " as ", scores[i].name, ", expected finite numbers");
  return counted;
}

std::vector<double> Evaluation::values() const {
  std::vector<double> values;
  for (const Ratio& score : scores) values.push_back(score.value());
  return values;
}

Device device_of(Module& model) {
  const auto parameters = model.parameters();
  return parameters.empty() ? Device{} : parameters.front().parameter->value().device();
}

void calibrate(Module& model, const Task& task, DataLoader& loader, DType dtype, int64_t batches) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  loader.start({});
  BatchFeed feed(loader, device_of(model), dtype);
  calibrate_batch_statistics(model, [&] {
    if (loader.position().batch == batches) return false;
    const auto batch = feed.next();
    if (batch) run_naming_sample(*batch, [&] { task.run_normalized_layers(model, *batch); });
    return batch.has_value();
  });
}

std::optional<Evaluation> evaluate(Module& model, const Task& task, DataLoader& loader,
                                   const EvaluationOptions& options, const std::string& when,
                                   const std::function<bool()>& stop) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  std::optional<BatchStatistics> statistics;
  if (options.batch_statistics) statistics.emplace(model);
  Evaluation found{.scores = std::vector<Ratio>(task.scores().size())};
  loader.start({});
  BatchFeed feed(loader, device_of(model), options.dtype);
  while (const auto batch = feed.next()) {
    if (stop()) return std::nullopt;
    if (options.batch_statistics && batch->size() == 1) continue;  // a last batch of one sample has no statistics
    const Forward pass = forward_pass(task, model, *batch);
    feed.prefetch();
    const double value = pass.loss.value().item();
    check_finite(value, when, model, task, *batch);
    found.loss_sum += value * static_cast<double>(batch->size());
    const std::vector<Ratio> counted = count_scores(task, pass.values(), batch->on_cpu());
    for (size_t i = 0; i < counted.size(); ++i) found.scores[i] += counted[i];
    found.samples += batch->size();
  }
  return found;
}

}  // namespace tern::trainer
