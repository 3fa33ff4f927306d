#pragma once

#include <optional>

#include "tern/core/error.h"
#include "tern/kernels/kernel.h"

// Softmax over the last dimension of a row-major tensor, and losses.

namespace tern::kernels {

inline constinit Kernel<void(const Tensor& x, Tensor& y)> softmax{"softmax"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> softmax_backward{"softmax_backward"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> log_softmax{"log_softmax"};
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx)> log_softmax_backward{
    "log_softmax_backward"};

/// A label that is no class. The message names row, label and classes.
class LabelError : public Error {
 public:
  LabelError(const Tensor& labels, int64_t of, int64_t classes)
      : LabelError(of, labels.numel(),
                   join({"label ", labels.data<int64_t>()[of], ", expected 0 to ", classes - 1, " for ", classes,
                         " classes"})) {}

  int64_t row, rows;   ///< the place of the label, and the number of labels
  std::string reason;  ///< the message without the row

 private:
  LabelError(int64_t of, int64_t in, const std::string& why)
      : Error(join({"cross_entropy: row ", of, " has ", why})), row(of), rows(in), reason(why) {}
};
/// Throws LabelError unless the label of this row is in [0, classes).
void check_label(const Tensor& labels, int64_t row, int64_t classes);

/// The targets t of rows of C classes: t[n, c] = weights[c] · ((1 - smoothing) · [c = label n] + smoothing/C), and 0
/// for all classes if label n is `ignored`. The tensors are on one device.
struct LabelTargets {
  Tensor labels;  ///< i64 [N] in [0, C), or `ignored`. If one is not, the CPU throws; CUDA gives NaN.
  double smoothing = 0;
  Tensor weights = {};  ///< of the classes, [C], of `parameter_dtype` of x; 1 if undefined
  std::optional<int64_t> ignored = {};
};
/// -Σ t[n, c] · log softmax(x)[n, c] over the classes of each row of x [N, C]: `loss` [N]. Or `loss` has rank 0 and
/// gets the sum over the rows, divided by `divisor` if that is defined. `divisor`, f64 of rank 0, gets the sum of
/// weights[label n] over the rows that count, so that the loss is their mean; it is NaN if none counts. `loss` has
/// `parameter_dtype` of x. So has `probabilities` [N, C], which is saved for the backward: 0 in a row that does not
/// count.
inline constinit Kernel<void(const Tensor& x, const LabelTargets&, Tensor& loss, Tensor& divisor,
                             Tensor& probabilities)>
    cross_entropy{"cross_entropy"};
/// dx = dloss/divisor · (probabilities · Σ t over the classes - t), in the dtype of dx, and 0 in a row that does not
/// count. dloss has the shape of the loss. `divisor` is 1 if it is undefined.
inline constinit Kernel<void(const Tensor& probabilities, const LabelTargets&, const Tensor& dloss,
                             const Tensor& divisor, Tensor& dx)>
    cross_entropy_backward{"cross_entropy_backward"};

/// loss = mean (x - target)², rank 0, `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> mse{"mse"};
/// dx = dloss · 2/numel · (x - target)
inline constinit Kernel<void(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx)> mse_backward{
    "mse_backward"};

/// max(x, 0) - x·t + log(1 + exp(-|x|)), the cross-entropy between t and sigmoid(x). `loss` has the shape and format of
/// x, or rank 0 and gets the mean over all elements. target: the shape and format of x. Both have `parameter_dtype` of
/// x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> binary_cross_entropy{
    "binary_cross_entropy"};
/// dx = dloss · (sigmoid(x) - target), divided by numel if the loss was the mean. dloss has the shape and format of the
/// loss.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx)>
    binary_cross_entropy_backward{"binary_cross_entropy_backward"};

/// Keeps the numbers of a training step, so that those of several steps are read together: rows[next] = (loss,
/// squared_norm), and `next` moves on to the row behind, or from the last row to the first. loss: rank 0. squared_norm:
/// f64, rank 0; if it is undefined, its place in the row does not change. rows: f64 [R, 2]; next: i64, rank 0, below R.
inline constinit Kernel<void(const Tensor& loss, const Tensor& squared_norm, Tensor& rows, Tensor& next)> keep_loss{
    "keep_loss"};

/// `keep_loss` of tensors on the CPU.
void keep_loss_on_cpu(const Tensor& loss, const Tensor& squared_norm, Tensor& rows, Tensor& next);

/// Throws an error that names both tensors unless `target` fits x, as `binary_cross_entropy` says.
void check_binary_target(const Tensor& x, const Tensor& target);

}  // namespace tern::kernels
