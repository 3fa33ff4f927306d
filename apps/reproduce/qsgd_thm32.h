#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/drawn_vector.h"
#include "tern/apps/reproduce/experiment.h"

namespace tern {

/// QSGD's Theorem 3.2 and Corollary 3.3 (Alistarh et al., 2017) measured: bytes of the messages that tern's codec makes
/// of vectors of several distributions and lengths by each of its codes, and of the two forms of Elias coding apart,
/// against the bounds.
class QsgdTheorem32 final : public Experiment {
 public:
  /// What a run finds for every s; bits of a message, the 32 of its norm included.
  static constexpr const char* kColumns[] = {"s",     "fixed",   "elias_sparse",  "elias_dense",
                                             "elias", "entropy", "theorem_bound", "corollary_bound"};

  static constexpr int64_t kLengths[] = {1024, 4096, 65536};

  explicit QsgdTheorem32(const ExperimentOptions& options);

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(Distribution distribution, int64_t n);
  static std::string theorem_table(const Results& results);
  static std::string corollary_table(const Results& results);
  static std::string csv(const Results& results);
  static std::string figure(const Results& results);

  int64_t draws_;
};

}  // namespace tern
