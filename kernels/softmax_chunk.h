#pragma once

#include "tern/kernels/embedding.h"
#include "tern/kernels/kernel.h"

// Softmax cross-entropy over classes whose logits come in chunks, so that no tensor has all of them. The running sums
// are those of Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. A chunk z [N, C] has the
// logits of classes [first, first + C), row-major. The labels of the N rows are `Bags` without values. A label outside
// of all chunks counts as one with logit 0, so check the labels before (`check_bag_elements`). Sums and losses have
// `parameter_dtype` of z.

namespace tern::kernels {

/// Takes a chunk into the running numbers of each row, all [N]: `maximum` of the logits, `sum` of exp(logit - maximum),
/// and `hits`, the sum of the logits of the row's labels. At first they are -∞, 0 and 0. A logit of -∞ adds nothing to
/// `sum`, also in a row that has no other yet.
inline constinit Kernel<void(const Tensor& z, const Bags& labels, int64_t first, Tensor& maximum, Tensor& sum,
                             Tensor& hits)>
    softmax_chunk{"softmax_chunk"};

/// After all chunks: logsumexp [N] = maximum + log(sum), and the loss of shape []: the mean over the rows of logsumexp
/// - hits / (number of labels). The loss of a row without labels is 0.
inline constinit Kernel<void(const Tensor& maximum, const Tensor& sum, const Tensor& hits, const Bags& labels,
                             Tensor& logsumexp, Tensor& loss)>
    softmax_chunk_loss{"softmax_chunk_loss"};

/// dz = dloss/N · (exp(z - logsumexp) - t) with t = (labels of the row that are this class) / (labels of the row), for
/// a chunk. 0 in rows without labels. dz may be z. dloss has rank 0.
inline constinit Kernel<void(const Tensor& logsumexp, const Bags& labels, int64_t first, const Tensor& dloss,
                             const Tensor& z, Tensor& dz)>
    softmax_chunk_backward{"softmax_chunk_backward"};

/// Takes a chunk into the K best classes of each row so far: `values` [N, K], their logits, which fall, and `classes`,
/// i64 [N, K]. At first they are -∞ and -1. Of equal logits, the lower class comes first. NaN and -∞ do not count.
inline constinit Kernel<void(const Tensor& z, int64_t first, Tensor& values, Tensor& classes)> top_classes{
    "top_classes"};

}  // namespace tern::kernels
