#include "tern/apps/trainer/evaluate.h"

#include <algorithm>

#include "tern/apps/trainer/batch_feed.h"
#include "tern/apps/trainer/diagnosis.h"
#include "tern/autograd/functional.h"
#include "tern/layers/module.h"
#include "tern/layers/normalization.h"

namespace tern {

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

void calibrate(Module& model, DataLoader& loader, DType dtype, int64_t batches) {
  const NoGradient no_gradient;
  const EvaluationMode mode(model);
  loader.start({});
  BatchFeed feed(loader, device_of(model));
  calibrate_batch_statistics(model, [&]() -> std::optional<Variable> {
    if (loader.position().batch == batches) return {};
    const auto batch = feed.next();
    return batch ? std::optional(convert(Variable(batch->images), dtype)) : std::nullopt;
  });
}

std::optional<Evaluation> evaluate(Module& model, DataLoader& loader, const EvaluationOptions& options,
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
    if (options.batch_statistics && batch->size() == 1) continue;  // a last one, which has no statistics
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

}  // namespace tern
