#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/experiment.h"

namespace tern {

/// QSGD's Figure 2 (Alistarh et al., 2017, section 5): an epoch's time in computation and communication by number of
/// workers, floats against 4 bits, measured on an imitated link.
class QsgdFigure2 final : public Experiment {
 public:
  struct Network {
    const char* name;   ///< in names of runs
    const char* title;  ///< of its panel
    const char* program;
    std::vector<std::string> flags;
    int64_t batch, epoch;           ///< images of a step of all workers; of an epoch
    int64_t steps, steps_if_quick;  ///< of a run
  };
  struct Method {
    const char* name;   ///< in names of runs
    const char* label;  ///< in tables and figures
    const char *codec, *exchange, *color;
  };

  static constexpr const char* kLink = "rate=1gbit,latency=0.1ms";

  /// An InputError names the option that cannot be.
  explicit QsgdFigure2(const ExperimentOptions& options);

  static std::span<const Network> networks();
  static std::span<const Method> methods();
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  /// Of an epoch, seconds of rank 0; nullopt where the run has not ended.
  std::optional<TimeShares> epoch_of(const Network& network, const Method& method, int64_t workers,
                                     const Results& results) const;
  int64_t steps(const Network& network) const;
  std::string run_name(const Network& network, const Method& method, int64_t workers) const;
  std::string table(const Network& network, const Results& results) const;
  std::string figure(const Results& results) const;

  bool quick_;
  std::optional<int64_t> iterations_;
  std::vector<int64_t> workers_;  ///< rising
};

}  // namespace tern
