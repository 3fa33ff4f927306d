#pragma once

#include "tern/autograd/variable.h"

namespace tern {

/// exp(x) / Σ exp(x) over the last dimension; row-major.
Variable softmax(const Variable& x);
/// log(softmax(x))
Variable log_softmax(const Variable& x);

}  // namespace tern
