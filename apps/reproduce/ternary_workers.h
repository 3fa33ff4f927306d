#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tern/data/loader.h"
#include "tern/dist/codec/codec.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/schedule.h"
#include "tern/trainer/application.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/run/evaluation.h"

namespace tern::reproduce {

/// A tensor's gradient in the stages of TernGrad (section 3): f32, row-major.
struct GradientStages {
  Tensor original, clipped, ternary;  ///< of the first worker
  Tensor averaged;                    ///< mean over all workers: input of the optimizer
  float scaler = 0;                   ///< shared by all workers
};

/// TernGrad's algorithm 1 with shared scalers (eq. 4). The workers run one after the other in this process, on one
/// model, so that each stage of a gradient can be observed. For a model without batch statistics, the steps equal those
/// of as many workers with --codec ternary --exchange server, bit for bit if each has the same number of threads. One
/// thread.
class TernaryWorkers {
 public:
  /// Receives the stages of each parameter's gradient in each step.
  using Observer = std::function<void(const std::string& name, const GradientStages& stages)>;

  /// Takes the number of workers, batch size, seed, recipe and codec from `settings`. Throws InputError if the codes of
  /// the codec cannot be summed.
  TernaryWorkers(const Application& application, const TrainSettings& settings);

  /// Makes one step. Returns the loss, the mean over the workers.
  double step(const Observer& observe);
  int64_t steps() const { return steps_; }
  int64_t steps_per_epoch() const { return loaders_.front()->batches(); }
  /// Evaluates on the test images, with averaged parameters if --ema-decay is set.
  trainer::Evaluation evaluate();

 private:
  double backward(size_t worker);
  std::vector<Tensor> gradients();
  GradientStages code(size_t parameter, const std::vector<std::vector<Tensor>>& gradients) const;

  TrainSettings settings_;
  std::shared_ptr<const Task> task_;
  trainer::RunData data_;
  std::unique_ptr<Module> model_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<ParameterAverage> average_;
  Schedule schedule_;
  std::unique_ptr<GradientCodec> codec_;
  std::vector<std::unique_ptr<DataLoader>> loaders_;  ///< one for each worker
  std::unique_ptr<DataLoader> test_loader_;
  int64_t steps_ = 0;
};

}  // namespace tern::reproduce
