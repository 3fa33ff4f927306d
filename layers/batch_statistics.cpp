#include "tern/layers/batch_statistics.h"

#include "tern/layers/evaluation_mode.h"

namespace tern {
BatchStatistics::BatchStatistics(Module& model) {
  for (const auto& [name, module] : model.modules()) {
    auto* norm = dynamic_cast<BatchNorm*>(module);
    if (norm == nullptr) continue;
    layers_.push_back({norm, norm->momentum(), *norm->num_batches_tracked.data<int64_t>(), norm->training()});
    norm->set_training(true);
    norm->set_momentum(0);
  }
}

BatchStatistics::~BatchStatistics() {
  for (const auto& [norm, momentum, batches, training] : layers_) {
    norm->set_momentum(momentum);
    *norm->num_batches_tracked.data<int64_t>() = batches;  // they count what was trained on
    norm->set_training(training);
  }
}

int64_t calibrate_batch_statistics(Module& model, const std::function<std::optional<Variable>()>& next_batch) {
  const NoGradient no_gradient;
  const EvaluationMode evaluation(model);
  const BatchStatistics by_batch(model);
  int64_t batches = 0;
  while (const auto x = next_batch()) {
    ++batches;
    for (const auto& [name, module] : model.modules())
      if (auto* norm = dynamic_cast<BatchNorm*>(module)) norm->set_momentum(1.0 / static_cast<double>(batches));
    model(*x);
  }
  return batches;
}

}  // namespace tern
