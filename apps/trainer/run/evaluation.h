#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/core/dtype.h"
#include "tern/data/loader.h"
#include "tern/layers/module.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

/// The result of an evaluation, as sums: the results for several parts of a data set can be added.
struct Evaluation {
  int64_t samples = 0;
  double loss_sum = 0;             ///< sum of the samples' losses
  std::vector<Ratio> scores = {};  ///< in the order of Task::scores

  double loss() const { return loss_sum / static_cast<double>(samples); }
  /// The scores' values.
  std::vector<double> values() const;
};

/// The dtype of activations, and the statistics that batch normalisation uses.
struct EvaluationOptions {
  DType dtype = DType::f32;
  bool batch_statistics = false;  ///< use each batch's statistics instead of the running ones
};

/// Runs `model` in evaluation mode over one epoch of `loader`, and restores the mode. Returns nullopt if `stop` returns
/// true between two batches. Throws InputError with the diagnosis of `check_finite` if a loss is not finite; `when` is
/// part of the message: "after step 5".
std::optional<Evaluation> evaluate(Module& model, const Task& task, DataLoader& loader,
                                   const EvaluationOptions& options, const std::string& when,
                                   const std::function<bool()>& stop);

/// `Task::forward`. Throws InputError with data set and sample if a label is no class.
Forward forward_pass(const Task& task, Module& model, const DeviceBatch& batch);

/// `Task::count`, for outputs on any device. Throws Error unless it gives one ratio per score.
std::vector<Ratio> count_scores(const Task& task, std::span<const Tensor> outputs, const Batch& batch);

/// Sets the running statistics of `model`'s batch normalisations to the means over the first `batches` batches of
/// `loader`.
void calibrate(Module& model, const Task& task, DataLoader& loader, DType dtype, int64_t batches);

/// The device of the model's parameters; the CPU if it has none.
Device device_of(Module& model);

/// Runs `model` forward on `batch` again to find the first value that is not finite. Returns "the output of layer
/// 'fc1'", with that layer's parameter if it is the cause; or "the loss" if every output is finite.
std::string first_not_finite(Module& model, const Task& task, const DeviceBatch& batch);

/// Throws InputError if `loss`, of `model` on `batch`, is not finite; `when` is part of the message: "at step 5". If a
/// field of the batch is not finite, the message names its sample; otherwise it has the diagnosis above. If the loss is
/// of a batch before this one, the message only has the diagnosis.
void check_finite(double loss, const std::string& when, Module& model, const Task& task, const DeviceBatch& batch,
                  bool is_of_batch = true);
/// Throws InputError with the first parameter or buffer of `model` that is not finite; `step` is part of the message.
void check_finite_state(Module& model, int64_t step);

}  // namespace tern::trainer
