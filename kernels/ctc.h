#pragma once

#include "tern/kernels/kernel.h"

// Connectionist temporal classification (Graves, Fernández, Gomez and Schmidhuber, 2006).

namespace tern::kernels {

/// The labels of N sequences of at most T frames, and their lengths. All tensors are i64 and on one device.
struct CtcTargets {
  Tensor labels;               ///< [N, S]: classes in [0, C), without the blank
  Tensor input_lengths;        ///< [N] in [0, T]: the frames of each sequence
  Tensor label_lengths;        ///< [N] in [0, S]: only so many labels of the row count
  int64_t blank = 0;           ///< a class in [0, C)
  bool zero_infinity = false;  ///< a sequence without a path has loss 0 and shares 0
};

/// The states of the longest sequence: a blank before each label, and one behind the last.
inline int64_t ctc_states(const CtcTargets& targets) { return 2 * targets.labels.size(1) + 1; }

/// losses[n] = -log p, and p is the sum over all paths of sequence n: those classes, one for each frame, that become
/// its labels if equal neighbours are merged and blanks are removed. A path has the product of its probabilities.
/// log_probabilities: [T, N, C]. shares[t, n, c] is the part of p that comes from paths with class c in frame t, which
/// is -∂losses[n]/∂log_probabilities[t, n, c]. It is 0 beyond a sequence's end. losses: [N], shares: [T, N, C], both of
/// `parameter_dtype`. A path needs a frame for each label, and one more between two equal labels. If there is no path,
/// the loss is infinite and the shares of the sequence's frames are NaN, as in PyTorch, unless `zero_infinity`. If a
/// label or a length is out of range, the CPU throws, and CUDA gives NaN.
inline constinit Kernel<void(const Tensor& log_probabilities, const CtcTargets&, Tensor& losses, Tensor& shares)>
    ctc_loss{"ctc_loss"};

/// Throws an error that names what does not fit, unless shapes, dtypes and devices are as above.
void check_ctc_shapes(const Tensor& log_probabilities, const CtcTargets& targets);
/// Throws an error that names the sequence unless its labels and lengths are in range. They are on the CPU.
void check_ctc_sequence(const Tensor& log_probabilities, const CtcTargets& targets, int64_t n);

}  // namespace tern::kernels
