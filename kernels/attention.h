#pragma once

#include "tern/kernels/kernel.h"

// Scaled dot-product attention (Vaswani et al., "Attention is all you need", 2017). No target keeps the matrix of all
// scores: its rows are computed block by block, and again in the backward (Dao et al., "FlashAttention", 2022).

namespace tern::kernels {

struct AttentionOptions {
  double scale = 1;     ///< of the scores, usually 1/√D
  bool causal = false;  ///< query i sees the keys j <= i only
};

/// y[b, i, :] = Σ_j p_ij · v[b, j, :], with p_i = softmax over j of scale · q[b, i, :]·k[b, j, :]. q: [B, L, D]; k: [B,
/// S, D]; v: [B, S, E]; y: [B, L, E], all of one dtype, row-major, S >= 1. `log_sums` [B, L], of `parameter_dtype`: log
/// Σ exp of the scores, for the backward. On CUDA, D and E are at most 256.
inline constinit Kernel<void(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions&, Tensor& y,
                             Tensor& log_sums)>
    attention{"attention"};

/// The inputs and outputs of `attention`, for its backward.
struct AttentionSaved {
  Tensor q, k, v, y, log_sums;
};
inline constinit Kernel<void(const Tensor& dy, const AttentionSaved&, const AttentionOptions&, Tensor& dq, Tensor& dk,
                             Tensor& dv)>
    attention_backward{"attention_backward"};

/// Returns [B, L, E]. Throws an error that says what does not fit.
Shape attention_output_shape(const Tensor& q, const Tensor& k, const Tensor& v);

}  // namespace tern::kernels
