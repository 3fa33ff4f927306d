#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tern/core/dtype.h"
#include "tern/data/loader.h"
#include "tern/layers/module.h"

namespace tern::trainer {

/// The result of an evaluation, as counts: the results for several parts of a data set can be added.
struct Evaluation {
  int64_t images = 0;
  int64_t correct = 0;  ///< images whose largest logit is at their label
  double loss_sum = 0;  ///< sum of the cross-entropies, without label smoothing

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double loss() const { return loss_sum / static_cast<double>(images); }
};

/// The dtype of the images, and the statistics that batch normalisation uses.
struct EvaluationOptions {
  DType dtype = DType::f32;
  bool batch_statistics = false;  ///< use each batch's statistics instead of the running ones
};

/// Runs `model` in evaluation mode over one epoch of `loader`, and restores the mode. Returns nullopt if `stop` returns
/// true between two batches. Throws InputError with the diagnosis of `check_finite` if a loss is not finite; `when` is
/// part of the message: "after step 5".
std::optional<Evaluation> evaluate(Layer& model, DataLoader& loader, const EvaluationOptions& options,
                                   const std::string& when, const std::function<bool()>& stop);

/// Sets the running statistics of `model`'s batch normalisations to the means over the first `batches` batches of
/// `loader`.
void calibrate(Layer& model, DataLoader& loader, DType dtype, int64_t batches);

/// The device of the model's parameters; the CPU if it has none.
Device device_of(Module& model);

/// Number of rows of `logits` [N, C] whose largest value is at their label. Of equal values, the first counts.
int64_t count_correct(const Tensor& logits, const Tensor& labels);

/// Runs `model` forward on `x` again to find the first value that is not finite. Returns "the output of layer 'fc1'",
/// with that layer's parameter if it is the cause; "the images"; or "the loss" if every output is finite.
std::string first_not_finite(Layer& model, const Variable& x);

/// Throws InputError with this diagnosis if `loss`, of `model` on `x`, is not finite; `when` is part of the message:
/// "at step 5".
void check_finite(double loss, const std::string& when, Layer& model, const Variable& x);
/// Throws InputError with the first parameter or buffer of `model` that is not finite; `step` is part of the message.
void check_finite_state(Module& model, int64_t step);

}  // namespace tern::trainer
