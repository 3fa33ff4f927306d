#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// Batch normalisation of x [N, C], [N, C, L] or [N, C, H, W], as torch.nn.BatchNorm1d and 2d. Training uses the
/// statistics of the batch, evaluation the running ones, or those of the batch if there are none. Then max(·, 0) with
/// `relu`.
class BatchNorm : public Layer {
 public:
  struct Options {
    int64_t features = 1;
    double epsilon = 1e-5;
    double momentum = 0.1;  ///< share of the newest batch in the running statistics
    bool relu = false;
    bool weight = true, bias = true;  ///< PyTorch's affine sets both
    bool running = true;              ///< keeps running statistics: PyTorch's track_running_stats
  };
  explicit BatchNorm(const Options& options);

  using Layer::operator();
  /// Adds `residual`, of x's shape, before the relu.
  Variable operator()(const Variable& x, const Variable& residual) {
    return run([&] { return forward(x, residual); });
  }
  Variable forward(const Variable& x) override { return forward(x, {}); }
  Variable forward(const Variable& x, const Variable& residual);

  double momentum() const { return options_.momentum; }
  /// In [0, 1]. If 0, a batch does not change the running statistics.
  void set_momentum(double momentum);

  // Null if there is none.
  Parameter* const weight;
  Parameter* const bias;
  Tensor* const running_mean;
  Tensor* const running_var;
  Tensor* const num_batches_tracked;

 private:
  friend class BatchStatistics;

  BatchNormOptions options_;
  /// While set, the running statistics are the means over the batches that came since, of which there are so many.
  std::optional<int64_t> averaged_ = {};
};

using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

/// While one lives, a model in evaluation mode normalises by the statistics of each batch. The running statistics do
/// not change, or with `averages` are the means over the batches that came. A batch of one example [1, C] is an error
/// then. Not thread-safe.
class BatchStatistics {
 public:
  explicit BatchStatistics(Module& model, bool averages = false);
  ~BatchStatistics();
  BatchStatistics(const BatchStatistics&) = delete;
  BatchStatistics& operator=(const BatchStatistics&) = delete;

 private:
  struct Norm {
    BatchNorm* norm;
    double momentum;
    int64_t batches;
    bool training;
  };
  std::vector<Norm> layers_;
};

/// Sets the running statistics of every batch normalisation to the means over batches, as
/// torch.optim.swa_utils.update_bn does: IST, section 3.3, with the whole model. `forward_next_batch` runs the model on
/// the next batch; it returns false if there is none. Random layers stay in evaluation mode. Returns the number of
/// batches; without any, nothing changes.
int64_t calibrate_batch_statistics(Module& model, const std::function<bool()>& forward_next_batch);

/// Layer normalisation over the last dimensions of x, which have the extents `shape`, as torch.nn.LayerNorm.
class LayerNorm final : public Layer {
 public:
  struct Options {
    Shape shape = {1};
    double epsilon = 1e-5;
    bool weight = true, bias = true;
  };
  explicit LayerNorm(const Options& options);
  Variable forward(const Variable& x) override;

  Parameter* const weight;  ///< null if there is none
  Parameter* const bias;    ///< null if there is none

 private:
  Options options_;
};

/// Local response normalisation across channels of x [N, C, H, W], as torch.nn.LocalResponseNorm.
class LocalResponseNorm final : public Layer {
 public:
  using Options = LocalResponseNormOptions;
  explicit LocalResponseNorm(const Options& options) : options_(options) {}
  Variable forward(const Variable& x) override { return local_response_norm(x, options_); }

 private:
  Options options_;
};

}  // namespace tern
