#pragma once

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

/// Mean over the rows of x [N, C] of the cross-entropy between softmax(x) and (1 - smoothing)·one_hot(label) +
/// smoothing / C. labels: i64 [N] in [0, C). If a label is outside, the CPU throws and CUDA gives a NaN loss. `loss`
/// has rank 0 and `parameter_dtype` of x. `probabilities` [N, C], also of `parameter_dtype`, is saved for the backward.
inline constinit Kernel<void(const Tensor& x, const Tensor& labels, double smoothing, Tensor& loss,
                             Tensor& probabilities)>
    cross_entropy{"cross_entropy"};
/// dx = dloss/N · (probabilities - target), in the dtype of dx. dloss has rank 0.
inline constinit Kernel<void(const Tensor& probabilities, const Tensor& labels, double smoothing, const Tensor& dloss,
                             Tensor& dx)>
    cross_entropy_backward{"cross_entropy_backward"};

/// The target distributions of labels, with the weights of the classes in them: targets[n, c] = weights[c] · ((1 -
/// smoothing) · [c = label n] + smoothing/C), and row_weights[n] = weights[label n]. Both are 0 if the label is
/// `ignored`. mask[n, c], u8, tells whether targets[n, c] is not 0. labels: i64 [N]; weights: [C]; targets: [N, C],
/// row_weights: [N], of the dtype of `weights`. If a label is outside of [0, C), the CPU throws and CUDA gives NaN.
struct TargetOptions {
  double smoothing;
  int64_t ignored;
};
inline constinit Kernel<void(const Tensor& weights, const Tensor& labels, const TargetOptions&, Tensor& targets,
                             Tensor& mask, Tensor& row_weights)>
    weighted_targets{"weighted_targets"};

/// loss = mean (x - target)², rank 0, `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> mse{"mse"};
/// dx = dloss · 2/numel · (x - target)
inline constinit Kernel<void(const Tensor& x, const Tensor& target, const Tensor& dloss, Tensor& dx)> mse_backward{
    "mse_backward"};

/// loss = mean of max(x, 0) - x·t + log(1 + exp(-|x|)) over all elements, rank 0, `parameter_dtype` of x: the
/// cross-entropy between t and sigmoid(x). target: the shape and format of x, in `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& target, Tensor& loss)> binary_cross_entropy{
    "binary_cross_entropy"};
/// dx = dloss/numel · (sigmoid(x) - target)
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
