#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/cost/round_time.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// Measures short runs of the parts of a network; the forecasts use these times. As many ranks as share a machine run
/// side by side. Each time is the median of the slowest rank's times, in seconds. The images are noise, which takes as
/// long as real images.
class Workbench {
 public:
  struct Options {
    int ranks = 1;       ///< ranks that share this machine
    int threads = 1;     ///< threads of each rank
    int64_t images = 1;  ///< images of each rank per step
    double seconds = 1;  ///< time limit of a measurement; 3 times that for the whole network
  };
  Workbench(const networks::Variant& variant, const Options& options);

  const Options& options() const { return options_; }
  /// The whole network of rank 0.
  Module& model() { return *models_.front(); }

  /// Time of a step of the network without the exchange: batch, forward, backward, update.
  double step_seconds();
  /// For each parameter, the time from the begin of such a step until backward has its gradient.
  std::vector<double> ready_seconds();
  /// Time of a step of rank 0's subnet among `workers`.
  double subnet_step_seconds(int workers, SubnetScope scope);
  /// Time of what local SGD does at each synchronisation besides the exchange: copies the model and subtracts twice. It
  /// stands, roughly, for the outer step of DiLoCo, SparseLoCo and NoLoCo, too.
  double change_seconds();
  /// Encode and decode time per element in an exchange.
  CodecCost codec(const std::string& codec, const std::string& exchange);
  /// A step of DeMo: its transforms are part of `compute`.
  struct DeMoStep {
    double compute = 0;
    CodecCost codec;
  };
  DeMoStep demo();
  /// Time per element to cut out and to insert the slices of independent subnets. Measured with two ranks.
  CodecCost slicing(SubnetScope scope);

 private:
  struct StepTimes {
    double compute = 0, encode = 0, decode = 0;
    std::vector<double> ready;  ///< of each parameter
  };
  using MakeMethod = std::function<std::unique_ptr<DistributedOptimizer>(Module&, Optimizer&, Communicator&)>;
  /// Measures exchanges between computations, so that the caches are in the same state as in a real job.
  StepTimes train(const std::vector<std::unique_ptr<Module>>& models, const TrainSettings& settings,
                  const MakeMethod& make_method, double budget) const;
  /// The same with gradients that are averaged in every step.
  StepTimes train_together(const AveragingOptions& averaging, double budget) const;
  /// The cost per element if a whole exchange of the network's gradients takes these times.
  CodecCost cost_of(const StepTimes& times, const std::string& codec, const std::string& exchange) const;

  std::unique_ptr<Module> initialized() const;

  Application application_;
  TrainSettings settings_;
  Options options_;
  std::unique_ptr<Dataset> noise_;
  std::vector<std::unique_ptr<Module>> models_;  ///< one for each rank
};

}  // namespace tern::advise
