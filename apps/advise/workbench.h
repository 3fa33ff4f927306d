#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/cost/round_time.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/networks/networks.h"

namespace tern::advise {

/// Short runs of a network's parts by as many ranks as share a machine, side by side: what a model of its training
/// stands on. Times are medians of what the slowest rank needs. Images are noise, which takes as long as pictures.
class Workbench {
 public:
  struct Options {
    int ranks = 1;       ///< that share this machine
    int threads = 1;     ///< of each
    int64_t images = 1;  ///< that each trains on in a step
    double seconds = 1;  ///< that a measurement may take, and thrice that of the whole network's computation
  };
  Workbench(const networks::Variant& variant, const Options& options);

  const Options& options() const { return options_; }
  /// The whole network.
  Module& model() { return *models_.front(); }
  StateDict optimizer_state();

  /// Of a step of the network but for the exchange: batch, forward, backward, update.
  double step_seconds();
  /// The same of rank 0's subnet among `workers`.
  double subnet_step_seconds(int workers);
  /// Of what local SGD does beside the exchange at each synchronisation: keeps the model, subtracts twice.
  double change_seconds();
  /// Of an element on its way through an exchange.
  CodecCost codec(const std::string& codec, const std::string& exchange);
  /// Of cutting out and putting in place an element of independent subnets; measured with two ranks.
  CodecCost slicing();

 private:
  struct StepTimes {
    double compute = 0, encode = 0, decode = 0;
  };
  /// Exchanges between computations leave the caches to themselves, as in a real job.
  StepTimes train(const std::vector<std::unique_ptr<Module>>& models,
                  const std::optional<DataParallel::Options>& together, double budget);

  std::unique_ptr<Module> initialized() const;

  Application application_;
  TrainSettings settings_;
  Options options_;
  std::unique_ptr<Dataset> noise_;
  std::vector<std::unique_ptr<Module>> models_;  ///< of the ranks
};

}  // namespace tern::advise
