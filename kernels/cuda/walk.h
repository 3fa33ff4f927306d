#pragma once

#include <algorithm>

#include "tern/core/error.h"
#include "tern/kernels/divider.h"
#include "tern/kernels/loop_nest.h"

namespace tern::cuda {

/// A LoopNest as a kernel's argument: finds where each array stands by an element's number. A plain value.
template <int Arrays>
struct Walk {
  explicit Walk(const kernels::LoopNest<Arrays>& nest, const char* operation)
      : depth(nest.depth), count(nest.outer * nest.inner) {
    check(depth == 1 || count < int64_t{1} << 31, operation, ": ", count,
          " elements with strides, on CUDA expected below 2^31");
    for (int d = 0; d < depth; ++d) {
      if (depth > 1) extent[d] = kernels::Divider(static_cast<uint32_t>(std::max<int64_t>(1, nest.extent[d])));
      for (int a = 0; a < Arrays; ++a) step[a][d] = nest.step[a][d];
    }
  }

  constexpr void find(int64_t element, int64_t (&at)[Arrays]) const {
    auto rest = static_cast<uint32_t>(element);
    for (int d = depth - 1; d > 0; --d) {
      const uint32_t next = extent[d].quotient(rest), here = rest - next * extent[d].divisor();
      for (int a = 0; a < Arrays; ++a) at[a] += here * step[a][d];
      rest = next;
    }
    for (int a = 0; a < Arrays; ++a) at[a] += (depth == 1 ? element : rest) * step[a][0];
  }
  constexpr int64_t inner_step(int array) const { return step[array][depth - 1]; }

  /// Whether runs of `width` elements from multiples of it on are adjacent, or one repeated, in every array.
  bool takes_packs(int width) const {
    const int64_t inner = depth == 1 ? count : extent[depth - 1].divisor();
    if (inner % width != 0 && depth > 1) return false;
    for (int a = 0; a < Arrays; ++a) {
      if (inner_step(a) != 0 && inner_step(a) != 1) return false;
      for (int d = 0; d + 1 < depth; ++d)
        if (inner_step(a) == 1 && step[a][d] % width != 0) return false;
    }
    return true;
  }

  int depth;
  int64_t count;
  kernels::Divider extent[Shape::kMaxRank] = {};
  int64_t step[Arrays][Shape::kMaxRank] = {};
};

}  // namespace tern::cuda
