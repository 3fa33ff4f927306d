#pragma once

#include "tern/autograd/variable.h"
#include "tern/kernels/matmul.h"

namespace tern {

using kernels::MatmulOptions;

/// y[..., m, n] = op(a)[..., m, k] · op(b)[..., k, n], where op exchanges the last two dimensions as `options` say.
/// Ranks 2 to 4; the leading dimensions are equal, or b has rank 2 and serves every matrix of a.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

/// What an operation does last, in the same pass.
struct Fused {
  bool relu = false;
};

/// y[N, out] = x[N, in] · w[out, in]ᵀ + bias[out]; `bias` may be undefined.
Variable linear(const Variable& x, const Variable& w, const Variable& bias, const Fused& fused = {});

}  // namespace tern
