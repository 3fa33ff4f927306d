#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tern/layers/batch_norm.h"

namespace tern {

/// While one lives, a model in evaluation mode normalises by the statistics of each batch instead of the running ones,
/// which stay as they are. Batches of one example of [N, C] are an error then. Not thread-safe.
class BatchStatistics {
 public:
  explicit BatchStatistics(Module& model);
  ~BatchStatistics();
  BatchStatistics(const BatchStatistics&) = delete;
  BatchStatistics& operator=(const BatchStatistics&) = delete;

 private:
  struct Layer {
    BatchNorm* norm;
    double momentum;
    int64_t batches;
    bool training;
  };
  std::vector<Layer> layers_;
};

/// Sets the running statistics of all batch normalisations to the means of those of the batches that `next_batch` gives
/// until it gives none (as torch.optim.swa_utils.update_bn): IST, section 3.3, with the whole model. Random layers stay
/// in evaluation mode. Returns how many batches there were; without any, nothing changes.
int64_t calibrate_batch_statistics(Module& model, const std::function<std::optional<Variable>()>& next_batch);

}  // namespace tern
