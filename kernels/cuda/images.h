#pragma once

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/kernels/divider.h"

namespace tern::cuda {

/// The elements of a tensor [N, C, H, W] by their number in storage, a pack of neighbouring channels counting as one
/// where channels are last. A plain value.
struct Images {
  /// Where an element stands.
  struct Place {
    int64_t n, c, h, w;
  };

  Images(const char* operation, const Tensor& x, int width)
      : last(x.format() == MemoryFormat::channels_last), strides(strides4(x)), height(x.size(2)), columns(x.size(3)) {
    count = x.numel() / width;
    check(count < int64_t{1} << 31, operation, ": ", x.shape(), " has ", x.numel(),
          " elements, on CUDA expected below 2^31");
    const auto divider = [](int64_t extent) {
      return kernels::Divider(static_cast<uint32_t>(std::max<int64_t>(1, extent)));
    };
    pack = width;
    inner = divider(last ? x.size(1) / width : x.size(3));
    middle = divider(last ? x.size(3) : x.size(2));
    outer = divider(last ? x.size(2) : x.size(1));
  }

  constexpr Place place(int64_t number) const {
    const auto first = static_cast<uint32_t>(number);
    const uint32_t second = inner.quotient(first), third = middle.quotient(second), n = outer.quotient(third);
    const int64_t a = first - second * inner.divisor(), b = second - third * middle.divisor(),
                  c = third - n * outer.divisor();
    return last ? Place{n, a * pack, c, b} : Place{n, c, b, a};
  }
  constexpr int64_t offset(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides.n + c * strides.c + h * strides.h + w * strides.w;
  }

  bool last;
  Strides4 strides;
  int64_t height, columns;
  int64_t count = 0;  ///< packs
  int pack = 1;
  kernels::Divider inner, middle, outer;
};

}  // namespace tern::cuda
