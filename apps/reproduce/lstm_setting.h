#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/options.h"

namespace tern::reproduce {

/// How the LSTM on AN4 is trained for QSGD's Table 1 and Figure 3.
class LstmSetting {
 public:
  /// Throws InputError with the option if one is invalid. `experiment` is its name for the message.
  LstmSetting(const char* experiment, const ExperimentOptions& options, int64_t usual_seeds);

  /// The runs with each codec; `more` are flags of all of them.
  CodecComparisonPlan plan(const std::string& title, const std::string& more_setting,
                           const std::vector<std::string>& more) const;
  /// How it is trained, in sentences.
  std::string sentences() const;

  bool quick = false;
  DataChoice data;
  int64_t workers = 2, iterations = 1, seeds = 1;
};

}  // namespace tern::reproduce
