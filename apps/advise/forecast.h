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

/// A way to train together, by the flags of its name.
struct Way {
  TrainingMethod method = TrainingMethod::data_parallel;
  std::string codec = kFloats, exchange = {};

  bool averages_every_step() const { return method == TrainingMethod::data_parallel; }
  bool sends_floats() const { return codec == kFloats; }
};

/// What a training step is expected to take: seconds, and bytes.
struct Forecast {
  Way way = {};
  double compute = 0;
  ExchangeTimes exchange = {};      ///< a step's share of it
  double sent = 0;                  ///< payload, the mean over all ranks
  std::vector<double> passes = {};  ///< `seconds` that each pass of measurements makes of it, where there are several

  double seconds() const { return compute + exchange.total(); }
  /// Whether every pass has it faster than `other`, which the same passes measured.
  bool surely_faster(const Forecast& other) const;
};

/// A message of a round, and how it goes.
struct PlannedRound {
  struct Message {
    ExchangePlan plan;
    std::string codec, exchange;
  };
  std::vector<Message> messages;

  /// Payload, the mean over the ranks.
  double sent(int workers) const;
};
/// Of data-parallel training or local SGD: the model's parameters and, where they are averaged too, its buffers.
PlannedRound plan_round(Module& model, const Way& way, int workers);

/// What a pass begins with.
struct Measured {
  double compute = 0;  ///< seconds of a step
  LinkCost here = {};  ///< of a message between two ranks of this machine
};

/// Forecasts for one network and one link, from one pass of measurements: of each thing when it is first needed.
class Forecaster {
 public:
  /// `workbench` is the caller's and outlives this.
  Forecaster(Workbench& workbench, const Link& link, int64_t local_steps);

  /// All that there are for so many workers, but ternary by reduce-scatter, which codes the mean again and undoes the
  /// averaging.
  std::vector<Way> ways(int workers);
  Forecast forecast(const Way& way, int workers);

  const Measured& measured() const { return measured_; }

 private:
  CodecCost measured(const std::string& codec, const std::string& exchange);
  Forecast subnets(const Way& way, int workers);

  Workbench& workbench_;
  int64_t local_steps_;
  Measured measured_;
  LinkCost link_;
  std::optional<double> change_;
  std::map<std::pair<std::string, std::string>, CodecCost> codecs_;
  std::optional<CodecCost> slicing_;
  std::map<int, double> subnet_compute_;
};

/// Of one way's forecasts, one from each pass: that of the median `seconds`, so that its times add up to a number
/// within the passes' range. Of two middle ones the slower.
Forecast median_pass(std::span<const Forecast> forecasts);
/// The same of what `passes` forecast.
Forecast median_forecast(std::span<Forecaster> passes, const Way& way, int workers);

}  // namespace tern::advise
