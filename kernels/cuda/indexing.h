#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/kernels/loop_nest.h"

// Computes the positions of elements, with the same code for the host and the device.

namespace tern::cuda {

/// Division by a number that is known before a kernel starts, as a multiplication and a shift (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", PLDI 1994, figure 4.1). Exact for every 32-bit dividend.
class Divider {
 public:
  constexpr Divider() = default;
  /// `divisor` is from 1 to 2^31.
  constexpr explicit Divider(uint32_t divisor) : divisor_(divisor) {
    while (uint64_t{1} << shift_ < divisor) ++shift_;
    multiplier_ = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor) / divisor + 1);
  }

  constexpr uint32_t divisor() const { return divisor_; }
  constexpr uint32_t quotient(uint32_t n) const {
    return static_cast<uint32_t>(((uint64_t{n} * multiplier_ >> 32) + n) >> shift_);
  }
  constexpr uint32_t remainder(uint32_t n) const { return n - quotient(n) * divisor_; }

 private:
  uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

/// A LoopNest as the argument of a kernel: finds the offset in each array from the number of an element. A plain value.
template <int Arrays>
struct Walk {
  explicit Walk(const kernels::LoopNest<Arrays>& nest, const char* operation)
      : depth(nest.depth), count(nest.outer * nest.inner) {
    check(depth == 1 || count < int64_t{1} << 31, operation, ": ", count,
          " elements with strides, on CUDA expected below 2^31");
    for (int d = 0; d < depth; ++d) {
      if (depth > 1) extent[d] = Divider(static_cast<uint32_t>(std::max<int64_t>(1, nest.extent[d])));
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

  /// Whether each pack of `width` elements, starting at a multiple of `width`, is adjacent or one repeated element in
  /// every array.
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
  Divider extent[Shape::kMaxRank] = {};
  int64_t step[Arrays][Shape::kMaxRank] = {};
};

/// The elements of a tensor [N, C, H, W] by their number in storage order. If channels are last, a pack of neighbouring
/// channels counts as one. A plain value.
struct Images {
  /// The position of an element.
  struct Place {
    int64_t n, c, h, w;
  };

  Images(const char* operation, const Tensor& x, int width)
      : last(x.format() == MemoryFormat::channels_last), strides(strides4(x)), height(x.size(2)), columns(x.size(3)) {
    count = x.numel() / width;
    check(count < int64_t{1} << 31, operation, ": ", x.shape(), " has ", x.numel(),
          " elements, on CUDA expected below 2^31");
    const auto divider = [](int64_t extent) { return Divider(static_cast<uint32_t>(std::max<int64_t>(1, extent))); };
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
  int64_t count = 0;  ///< number of packs
  int pack = 1;
  Divider inner, middle, outer;
};

/// One axis of a pooling: the elements that a window covers, and the windows that cover an element. The host and the
/// device share this code.
struct PoolAxis {
  int32_t window, stride, padding, input, output;

  constexpr int32_t first(int32_t i) const { return i * stride - padding; }  ///< may lie in the padding
  constexpr int32_t begin(int32_t i) const { return first(i) > 0 ? first(i) : 0; }
  constexpr int32_t end(int32_t i) const { return first(i) + window < input ? first(i) + window : input; }
  /// The divisor of an average, along this axis. Padding counts if `counted`, but never the part that ceil_mode adds
  /// beyond it.
  constexpr int32_t divisor(int32_t i, bool counted) const {
    const int32_t most = counted ? input + padding : input;
    return (first(i) + window < most ? first(i) + window : most) - (counted ? first(i) : begin(i));
  }
  constexpr int32_t first_window(int32_t h) const {
    return h + padding < window ? 0 : (h + padding - window) / stride + 1;
  }
  constexpr int32_t last_window(int32_t h) const {
    const int32_t last = (h + padding) / stride;
    return last < output ? last : output - 1;
  }
};

}  // namespace tern::cuda
