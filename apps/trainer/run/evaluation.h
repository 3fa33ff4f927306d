#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tern/core/dtype.h"
#include "tern/data/loader.h"
#include "tern/layers/module.h"

namespace tern::trainer {

/// How a model does on some images; counts, so that those of several shares of a data set add up.
struct Evaluation {
  int64_t images = 0;
  int64_t correct = 0;  ///< images whose largest logit is their label's
  double loss_sum = 0;  ///< of their cross-entropies, without label smoothing

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double loss() const { return loss_sum / static_cast<double>(images); }
};

/// How images enter, and what batch normalisations go by.
struct EvaluationOptions {
  DType dtype = DType::f32;
  bool batch_statistics = false;  ///< of each batch, instead of the running ones
};

/// Runs `model`, in evaluation mode, over one epoch of `loader`; its mode is as before on return. Nothing where `stop`
/// returned true between two batches. An InputError with the diagnosis of `check_finite` where a loss is not finite;
/// `when` is of it: "after step 5".
std::optional<Evaluation> evaluate(Module& model, DataLoader& loader, const EvaluationOptions& options,
                                   const std::string& when, const std::function<bool()>& stop);

/// Sets the running statistics of `model`'s batch normalisations to the means over the first `batches` of `loader`.
void calibrate(Module& model, DataLoader& loader, DType dtype, int64_t batches);

/// Where the model's parameters lie; the CPU where it has none.
Device device_of(Module& model);

/// How many rows of `logits` [N, C] are largest at their label; the first of several equals counts as the largest.
int64_t count_correct(const Tensor& logits, const Tensor& labels);

/// Runs `model` forward on `x` once more and says where a number that is not finite first appears: "the output of layer
/// 'fc1'", with that layer's parameter where it is the cause; "the images"; or "the loss" where every output is finite.
std::string first_not_finite(Module& model, const Variable& x);

/// Throws an InputError with the diagnosis above where `loss`, of `model` on `x`, is not finite; `when` is as in "at
/// step 5".
void check_finite(double loss, const std::string& when, Module& model, const Variable& x);
/// Throws an InputError that names the first parameter or buffer of `model` that is not finite after `step`.
void check_finite_state(Module& model, int64_t step);

}  // namespace tern::trainer
