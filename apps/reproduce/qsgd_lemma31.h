#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/drawn_vector.h"
#include "tern/apps/reproduce/experiment.h"

namespace tern {

/// QSGD's Lemma 3.1 (Alistarh et al., 2017) measured: mean, variance and non-zeros of Q_s(v), drawn by tern's codec
/// from vectors of several distributions and lengths, beside what equation (4) gives for the same vector and the
/// bounds; and the paper's presets (section 5).
class QsgdLemma31 final : public Experiment {
 public:
  /// A codec of section 5 on a Gaussian vector. What it does there was calculated without tern.
  struct Preset {
    const char* spec;
    int64_t bucket, levels;
    bool by_maximum;
    double density;   ///< share of elements that are not zero
    double variance;  ///< relative to ‖v‖²
    double entropy;   ///< bits an element, without the scales
  };

  static constexpr int64_t kLong = 65536;
  static constexpr const char* kPresets = "presets";
  /// What a run finds for every s.
  static constexpr const char* kColumns[] = {"s",
                                             "along",
                                             "along_error",
                                             "mean_error",
                                             "variance",
                                             "variance_expected",
                                             "variance_bound",
                                             "nonzeros",
                                             "nonzeros_expected",
                                             "nonzeros_bound"};

  explicit QsgdLemma31(const ExperimentOptions& options);

  static std::span<const Preset> presets();
  static std::vector<int64_t> lengths() { return {1024, kLong}; }
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(Distribution distribution, int64_t n);

  int64_t draws_;
};

}  // namespace tern
