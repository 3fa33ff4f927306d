#pragma once

#include "tern/dist/collective.h"

namespace tern::detail {

/// into = into + from or max(into, from), element by element; f32, f64, bf16 (summed in f32) and i64. A NaN stays one.
void reduce(Reduction reduction, DType dtype, Bytes into, ConstBytes from);

}  // namespace tern::detail
