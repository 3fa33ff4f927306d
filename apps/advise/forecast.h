#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tern/apps/advise/workbench.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/trainer/settings.h"

namespace tern::advise {

/// A way to train together; the fields are the values of the flags --method, --codec, --exchange, --overlap and
/// --ist-scope.
struct Way {
  TrainingMethod method = TrainingMethod::data_parallel;
  std::string codec = kFloats, exchange = {};
  bool overlap = false;
  SubnetScope scope = SubnetScope::fc;  ///< of independent subnets

  bool averages_every_step() const { return method == TrainingMethod::data_parallel; }
  /// Whether the method takes --codec and --exchange. DeMo and NoLoCo have their own.
  bool takes_exchange() const { return traits_of(method).own_code.empty(); }
  bool has_power_sgd() const { return exchange == "powersgd"; }
  /// Whether the ranks get the exact mean of what they send.
  bool sends_floats() const { return codec == kFloats && !has_power_sgd(); }
};
/// The way of these settings. If they name no exchange, it has the default for this number of workers.
Way way_of(const TrainSettings& settings, int workers);

/// The expected cost of a training step: times in seconds, and bytes.
struct Forecast {
  Way way = {};
  double compute = 0;
  ExchangeTimes exchange = {};      ///< this step's share of the exchange
  double sent = 0;                  ///< payload bytes, the mean over all ranks
  std::vector<double> passes = {};  ///< `seconds` of each pass; empty if this is one pass's forecast

  double seconds() const { return compute + exchange.total(); }
  /// Whether this is faster than `other` in every pass. Both must come from the same passes.
  bool surely_faster(const Forecast& other) const;
};

/// The messages of one exchange, each with its codec and exchange method.
struct PlannedRound {
  struct Message {
    ExchangePlan plan;
    std::string codec, exchange;
    /// The trained parameters, by their index in the model; the buffers of methods with local steps follow them.
    std::vector<size_t> members;
  };
  std::vector<Message> messages;

  /// Payload bytes per rank, the mean over the ranks.
  double sent(int workers) const;
};
/// Plans the exchange of any method but independent subnets. It has the trained parameters and, with local steps, the
/// floating-point buffers.
PlannedRound plan_round(Module& model, const Way& way, int workers);

/// The seconds of a mean step in which ranks on CPUs wait for the sum of their losses. It travels during a backward
/// pass: in each step, or once a round. `compute`: seconds of a step's computation.
double loss_wait(TrainingMethod method, int64_t local_steps, const LinkCost& link, int workers, double compute);

/// What a pass measures first.
struct Measured {
  double compute = 0;  ///< computing time of a step, in seconds
  LinkCost here = {};  ///< cost of a message between two ranks of this machine
};

/// Forecasts for one network and one link, from one pass of measurements. Measures each quantity when it is first
/// needed.
class Forecaster {
 public:
  /// The caller owns `workbench`, which must outlive this.
  Forecaster(Workbench& workbench, const Link& link, int64_t local_steps);

  /// All ways for this number of workers, except ternary with reduce-scatter, which would code the mean again and so
  /// undo the averaging, and allgather-sent, because it has a different mean.
  std::vector<Way> ways(int workers);
  Forecast forecast(const Way& way, int workers);

  const Measured& measured() const { return measured_; }

 private:
  CodecCost measured(const std::string& codec, const std::string& exchange);
  const Workbench::DeMoStep& demo();
  Forecast subnets(const Way& way, int workers);
  ExchangeTimes round(const Way& way, const PlannedRound& planned);

  Workbench& workbench_;
  int64_t local_steps_;
  Measured measured_;
  LinkCost link_;
  std::optional<double> change_;
  std::optional<Workbench::DeMoStep> demo_;
  std::map<std::pair<std::string, std::string>, CodecCost> codecs_;
  std::optional<std::vector<double>> ready_;
  std::map<SubnetScope, CodecCost> slicing_;
  std::map<std::pair<SubnetScope, int>, double> subnet_compute_;
};

/// Given one way's forecasts, one from each pass, returns the one with the median `seconds`, so that its times add up
/// to a value within the passes' range. Of an even number, takes the slower of the two middle ones.
Forecast median_pass(std::span<const Forecast> forecasts);
/// The median of what `passes` forecast for `way`.
Forecast median_forecast(std::span<Forecaster> passes, const Way& way, int workers);

}  // namespace tern::advise
