#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/apps/tern-advise/workbench.h"
#include "tern/dist/exchange_times.h"

namespace tern {

/// A way to train together, by the flags of its name.
struct Way {
  std::string method, codec, exchange;

  bool averages_every_step() const { return method == "data-parallel"; }
};

/// What a training step is expected to take: seconds, and bytes.
struct Forecast {
  Way way;
  double compute = 0;
  ExchangeTimes exchange;  ///< a step's share of it
  double sent = 0;         ///< payload, the mean over all ranks

  double seconds() const { return compute + exchange.total(); }
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

/// Forecasts for one network and one link, from what its workbench measures when it is first needed.
class Forecaster {
 public:
  /// `workbench` is the caller's and outlives this.
  Forecaster(Workbench& workbench, const LinkCost& link, int64_t local_steps);

  /// All that there are for so many workers but for what is slower on any link: floats by anything but the ring. And
  /// ternary by reduce-scatter, which codes the mean again and undoes the averaging.
  std::vector<Way> ways(int workers);
  Forecast forecast(const Way& way, int workers);

  double compute() const { return compute_; }
  const LinkCost& link() const { return link_; }

 private:
  CodecCost measured(const std::string& codec, const std::string& exchange);
  Forecast subnets(const Way& way, int workers);

  Workbench& workbench_;
  LinkCost link_;
  int64_t local_steps_;
  double compute_;
  std::optional<double> change_;
  std::map<std::pair<std::string, std::string>, CodecCost> codecs_;
  std::optional<CodecCost> slicing_;
  std::map<int, double> subnet_compute_;
};

}  // namespace tern
