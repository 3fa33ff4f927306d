#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

namespace tern::kernels {

// What the codes of `kept` elements of a tensor have to be: topk.h and randk.h.

/// Throws an error that names the tensor unless `codes` are `bytes` bytes beside the gradient g.
void check_kept(const char* operation, const Tensor& g, int64_t kept, const Tensor& codes, int64_t bytes);
/// Throws an error that names the tensor unless bytes `begin` to `end` of each message [messages, bytes] can be a code,
/// and `sum` is beside them.
void check_kept_add(const char* operation, const Tensor& sum, int64_t kept, const Tensor& messages, int64_t begin,
                    int64_t end);

}  // namespace tern::kernels
