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
#include "tern/trainer/run/datasets.h"
#include "tern/trainer/run/evaluation.h"

namespace tern::reproduce {

/// A tensor's gradient on its way through TernGrad (section 3): f32, row-major.
struct GradientStages {
  Tensor original, clipped, ternary;  ///< of the first worker
  Tensor averaged;                    ///< over all workers: what the optimizer takes
  float scaler = 0;                   ///< shared by all workers
};

/// TernGrad's algorithm 1 with shared scalers (eq. 4) by workers that take turns in this process, on one model, so that
/// each gradient can be looked at on its way. On a model without batch statistics: the steps of as many workers with
/// --codec ternary --exchange server, bit for bit with as many threads in each. Used by one thread.
class TernaryWorkers {
 public:
  /// Called in each step with the stages of each parameter's gradient.
  using Observer = std::function<void(const std::string& name, const GradientStages& stages)>;

  /// `settings` as of --workers, with its batch size, seed, recipe and codec; one whose codes cannot be summed is an
  /// InputError.
  TernaryWorkers(const Application& application, const TrainSettings& settings);

  /// One step; the loss, as a mean over the workers.
  double step(const Observer& observe);
  int64_t steps() const { return steps_; }
  int64_t steps_per_epoch() const { return loaders_.front()->batches(); }
  /// On the test images, with averaged parameters where --ema-decay is set.
  trainer::Evaluation evaluate();

 private:
  double backward(size_t worker);
  std::vector<Tensor> gradients();
  GradientStages code(size_t parameter, const std::vector<std::vector<Tensor>>& gradients) const;

  TrainSettings settings_;
  trainer::RunData data_;
  std::unique_ptr<Module> model_;
  std::vector<NamedParameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<ParameterAverage> average_;
  Schedule schedule_;
  std::unique_ptr<GradientCodec> codec_;
  std::vector<std::unique_ptr<DataLoader>> loaders_;  ///< of the workers
  std::unique_ptr<DataLoader> test_loader_;
  int64_t steps_ = 0;
};

}  // namespace tern::reproduce
