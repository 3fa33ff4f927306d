#include <algorithm>
#include <type_traits>
#include <utility>

#include "tern/kernels/cpu/map.h"
#include "tern/kernels/pooling.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// Rows (or columns) [first, last) under a window, and the first row of the window, which may lie in the padding.
struct Span {
  int64_t first, last, origin;
};

/// The window of output element `index` along one dimension, cut to the input's `extent`.
inline Span window_span(int64_t index, int64_t window, int64_t stride, int64_t padding, int64_t extent) {
  const int64_t origin = index * stride - padding;
  return {std::max<int64_t>(origin, 0), std::min(origin + window, extent), origin};
}

/// The output elements [first, last) whose windows hold input element `index`, along one dimension. `advance` moves to
/// the next index.
class CoveringSpan {
 public:
  CoveringSpan(int64_t index, int64_t window, int64_t stride, int64_t padding, int64_t outputs)
      : place_(index + padding), window_(window), stride_(stride), outputs_(outputs) {
    first = place_ < window ? 0 : (place_ - window) / stride + 1;
    last = std::min(place_ / stride + 1, outputs);
  }
  void advance() {
    ++place_;
    if (first * stride_ + window_ <= place_) ++first;
    if (last < outputs_ && last * stride_ <= place_) ++last;
  }

  int64_t first, last;

 private:
  int64_t place_, window_, stride_, outputs_;
};

/// The grid for loops over a rank-4 tensor: `planes` · h · w points of `width` adjacent elements each. Channels-last: a
/// plane is an image, and a point is all its channels at one pixel. Row-major: a plane is one channel of one image, and
/// a point is one element.
struct PointGrid {
  int64_t planes, h, w, width;
};
inline PointGrid point_grid(const Tensor& x) {
  const bool last = x.format() == MemoryFormat::channels_last;
  return {last ? x.size(0) : x.size(0) * x.size(1), x.size(2), x.size(3), last ? x.size(1) : 1};
}

/// Calls body(plane, row) for every row of every plane, vectorised and on all threads. A row takes about as long as to
/// write `elements` elements.
template <class Body>
void for_each_grid_row(const PointGrid& grid, int64_t elements, Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
  parallel_vectorized(grid.planes * grid.h, grain, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i / grid.h, i % grid.h);
  });
}
/// The same for rows whose elements take a small window each.
template <class Body>
void for_each_grid_row(const PointGrid& grid, Body body) {
  for_each_grid_row(grid, 4 * grid.w * grid.width, body);
}

using kernels::Extent2;
using kernels::PoolGeometry;

/// The number of adjacent elements that a pooling loop takes at a time: a constant, so that a strip is a few whole
/// vectors in registers.
template <int64_t kCount>
struct Strip {
  static constexpr int64_t kMost = kCount;
  static constexpr int64_t count() { return kCount; }
};
/// The strip for points of fewer than eight elements. The mask shows the compiler that vectors do not pay.
struct ShortStrip {
  static constexpr int64_t kMost = 7;
  int64_t elements;
  int64_t count() const { return elements & kMost; }
};

/// Calls function(strip) with the strip for points of `width` elements.
template <class Function>
void visit_strip(int64_t width, Function function) {
  if (width >= 16)
    function(Strip<16>());
  else if (width >= 8)
    function(Strip<8>());
  else
    function(ShortStrip{width});
}

/// Calls body(begin) for strips that cover all `width` elements of a point. The last one may overlap the one before,
/// and its elements are then computed again.
template <int64_t kCount, class Body>
void for_each_strip(int64_t width, Strip<kCount>, Body body) {
  for (int64_t block = 0; block < width; block += kCount) body(std::min(block, width - kCount));
}
template <class Body>
void for_each_strip(int64_t, ShortStrip, Body body) {
  body(0);
}

/// Whether the windows are whole and do not overlap.
bool windows_are_apart(const PoolGeometry& geometry, const PointGrid& in, const PointGrid& out) {
  const Extent2 window = geometry.window, stride = geometry.stride;
  return geometry.padding == Extent2(0) && stride.h >= window.h && stride.w >= window.w &&
         (out.h - 1) * stride.h + window.h <= in.h && (out.w - 1) * stride.w + window.w <= in.w;
}

/// Writes the gradient of an input whose windows are apart. An element is gradient(output, here): `output` is the index
/// of its window's output, and `here` its place within the window. It is 0 if no window holds it.
template <class T, class Width, class Gradient>
void write_by_windows(const PoolGeometry& geometry, const PointGrid& in, const PointGrid& out, Width strip, T* to,
                      Gradient gradient) {
  for_each_grid_row(out, in.h / out.h * in.w * in.width, [=](int64_t plane, int64_t i) {
    const Extent2 window = geometry.window, stride = geometry.stride;
    const int64_t top = i * stride.h, bottom = i + 1 < out.h ? top + stride.h : in.h;
    for (int64_t row = top; row < bottom; ++row) {
      T* target = to + (plane * in.h + row) * in.w * in.width;
      T* const end = target + in.w * in.width;
      for (int64_t j = 0; j < out.w && row < top + window.h; ++j) {
        const int64_t output = ((plane * out.h + i) * out.w + j) * out.width;
        for (int64_t column = 0; column < window.w; ++column, target += in.width) {
          const auto here = static_cast<int32_t>((row - top) * window.w + column);
          for_each_strip(in.width, strip, [=](int64_t begin) {
#pragma omp simd
            for (int64_t c = begin; c < begin + strip.count(); ++c) store(target + c, gradient(output + c, here));
          });
        }
        T* const next = j + 1 < out.w ? target + (stride.w - window.w) * in.width : end;
        std::fill(target, next, T{});
        target = next;
      }
      std::fill(target, end, T{});
    }
  });
}

/// The number of channels that a pooling loop holds in registers or first-level cache at a time.
inline constexpr int64_t kPoolStrip = 64;

/// The factor of the sum over a window.
float window_scale(const PoolGeometry& geometry, const Span& rows, const Span& columns, const PointGrid& in) {
  if (!geometry.count_include_pad)
    return 1.0f / static_cast<float>((rows.last - rows.first) * (columns.last - columns.first));
  const int64_t h = std::min(rows.origin + geometry.window.h, in.h + geometry.padding.h) - rows.origin;
  const int64_t w = std::min(columns.origin + geometry.window.w, in.w + geometry.padding.w) - columns.origin;
  return 1.0f / static_cast<float>(h * w);
}

/// The most elements of a window that are summed in f32 alone.
inline constexpr int64_t kPoolRun = 64;

/// Sums the elements of a large window for up to kPoolStrip channels: runs in f32, then their sums in f64. `corner` is
/// the first element.
template <class T>
void sum_large_window(const T* corner, int64_t rows, int64_t columns, const PointGrid& in, int64_t width, float* sum) {
  double total[kPoolStrip] = {};
  const int64_t tall = std::max<int64_t>(1, kPoolRun / columns);
  for (int64_t top = 0; top < rows; top += tall)
    for (int64_t left = 0; left < columns; left += kPoolRun) {
      const int64_t bottom = std::min(rows, top + tall), right = std::min(columns, left + kPoolRun);
      float partial[kPoolStrip] = {};
      for (int64_t h = top; h < bottom; ++h) {
        const T* row = corner + h * in.w * in.width;
        if (in.width == 1) {
          float of_row = 0;
#pragma omp simd reduction(+ : of_row)
          for (int64_t w = left; w < right; ++w) of_row += load(row + w);
          partial[0] += of_row;
          continue;
        }
        for (int64_t w = left; w < right; ++w) {
          const T* point = row + w * in.width;
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) partial[c] += load(point + c);
        }
      }
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) total[c] += partial[c];
    }
  for (int64_t c = 0; c < width; ++c) sum[c] = static_cast<float>(total[c]);
}

void average_pool2d(const Tensor& x, const PoolGeometry& geometry, Tensor& y) {
  visit_fast(x.dtype(), "average_pool2d", [&]<class T>(T) {
    const PointGrid in = point_grid(x), out = point_grid(y);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_each_grid_row(out, [=](int64_t plane, int64_t i) {
      const Span rows = window_span(i, geometry.window.h, geometry.stride.h, geometry.padding.h, in.h);
      for (int64_t j = 0; j < out.w; ++j) {
        const Span columns = window_span(j, geometry.window.w, geometry.stride.w, geometry.padding.w, in.w);
        const float scale = window_scale(geometry, rows, columns, in);
        const bool is_large = (rows.last - rows.first) * (columns.last - columns.first) > kPoolRun;
        T* target = to + ((plane * out.h + i) * out.w + j) * out.width;
        for (int64_t begin = 0; begin < out.width; begin += kPoolStrip) {
          const int64_t width = std::min(kPoolStrip, out.width - begin);
          float sum[kPoolStrip] = {};
          if (is_large) {
            const T* corner = from + ((plane * in.h + rows.first) * in.w + columns.first) * in.width + begin;
            sum_large_window(corner, rows.last - rows.first, columns.last - columns.first, in, width, sum);
          } else {
            for (int64_t h = rows.first; h < rows.last; ++h)
              for (int64_t w = columns.first; w < columns.last; ++w) {
                const T* point = from + ((plane * in.h + h) * in.w + w) * in.width + begin;
#pragma omp simd
                for (int64_t c = 0; c < width; ++c) sum[c] += load(point + c);
              }
          }
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) store(target + begin + c, scale * sum[c]);
        }
      }
    });
  });
}

void average_pool2d_backward(const Tensor& dy, const PoolGeometry& geometry, Tensor& dx) {
  const Tensor d_out = dy.to(dx.format());
  visit_fast(dy.dtype(), "average_pool2d_backward", [&]<class T>(T) {
    const PointGrid in = point_grid(dx), out = point_grid(d_out);
    const T* from = d_out.data<T>();
    T* to = dx.data<T>();
    if (windows_are_apart(geometry, in, out)) {
      const float scale = 1.0f / static_cast<float>(geometry.window.h * geometry.window.w);
      visit_strip(in.width, [&](auto strip) {
        write_by_windows(geometry, in, out, strip, to, [=](int64_t i, int32_t) { return scale * load(from + i); });
      });
      return;
    }
    for_each_grid_row(in, [=](int64_t plane, int64_t h) {
      const CoveringSpan rows(h, geometry.window.h, geometry.stride.h, geometry.padding.h, out.h);
      CoveringSpan columns(0, geometry.window.w, geometry.stride.w, geometry.padding.w, out.w);
      for (int64_t w = 0; w < in.w; ++w, columns.advance()) {
        T* target = to + ((plane * in.h + h) * in.w + w) * in.width;
        for (int64_t begin = 0; begin < in.width; begin += kPoolStrip) {
          const int64_t width = std::min(kPoolStrip, in.width - begin);
          float sum[kPoolStrip] = {};
          for (int64_t i = rows.first; i < rows.last; ++i)
            for (int64_t j = columns.first; j < columns.last; ++j) {
              const Span window_rows = window_span(i, geometry.window.h, geometry.stride.h, geometry.padding.h, in.h),
                         window_columns =
                             window_span(j, geometry.window.w, geometry.stride.w, geometry.padding.w, in.w);
              const float scale = window_scale(geometry, window_rows, window_columns, in);
              const T* point = from + ((plane * out.h + i) * out.w + j) * out.width + begin;
#pragma omp simd
              for (int64_t c = 0; c < width; ++c) sum[c] += scale * load(point + c);
            }
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) store(target + begin + c, sum[c]);
        }
      }
    });
  });
}

/// Calls function(P*, strip) with the elements of `where` and the strip for points of `width` elements.
template <class Function>
void visit_strips(const Tensor& where, int64_t width, Function function) {
  kernels::visit_places(where, [&](auto* place) { visit_strip(width, [&](auto strip) { function(place, strip); }); });
}

/// Makes `other` the largest element of a window so far if it is, or if it is NaN.
inline void meet(float other, int32_t its_place, float& best, int32_t& place) {
  const bool wins = (other > best) | (other != other);
  best = wins ? other : best;
  place = wins ? its_place : place;
}

/// Pools all channels of a window of kSize × kSize elements that no border cuts. `corner` is its first element. Without
/// loops over the window, the winners of a strip stay in registers.
template <int64_t kSize, class T, class P, class Width>
void pool_whole_window(const T* corner, int64_t row_stride, int64_t width, Width strip, T* to, P* place) {
  for_each_strip(width, strip, [=](int64_t begin) {
    // A loop of its own stores the places. Otherwise the compiler takes only four elements at a time.
    int32_t winners[Width::kMost];
#pragma omp simd
    for (int64_t c = 0; c < strip.count(); ++c) {
      const T* element = corner + begin + c;
      float best = load(element);
      int32_t winner = 0;
      const auto meet_all = [&]<int32_t... k>(std::integer_sequence<int32_t, k...>) {
        (meet(load(element + k / kSize * row_stride + k % kSize * width), k, best, winner), ...);
      };
      meet_all(std::make_integer_sequence<int32_t, kSize * kSize>());
      store(to + begin + c, best);
      winners[c] = winner;
    }
#pragma omp simd
    for (int64_t c = 0; c < strip.count(); ++c) place[begin + c] = static_cast<P>(winners[c]);
  });
}

void max_pool2d(const Tensor& x, const PoolGeometry& geometry, Tensor& y, Tensor& where) {
  visit_fast(x.dtype(), "max_pool2d", [&]<class T>(T) {
    const PointGrid in = point_grid(x), out = point_grid(y);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    visit_strips(where, out.width, [&]<class P, class Width>(P* place, Width strip) {
      for_each_grid_row(out, [=](int64_t plane, int64_t i) {
        const Span rows = window_span(i, geometry.window.h, geometry.stride.h, geometry.padding.h, in.h);
        for (int64_t j = 0; j < out.w; ++j) {
          const Span columns = window_span(j, geometry.window.w, geometry.stride.w, geometry.padding.w, in.w);
          const auto first =
              static_cast<int32_t>((rows.first - rows.origin) * geometry.window.w + columns.first - columns.origin);
          const T* corner = from + ((plane * in.h + rows.first) * in.w + columns.first) * in.width;
          const int64_t target = ((plane * out.h + i) * out.w + j) * out.width;
          const bool is_whole = !std::is_same_v<Width, ShortStrip> && rows.last - rows.first == geometry.window.h &&
                                columns.last - columns.first == geometry.window.w;
          if (is_whole && geometry.window == Extent2(2)) {
            pool_whole_window<2>(corner, in.w * in.width, in.width, strip, to + target, place + target);
            continue;
          }
          if (is_whole && geometry.window == Extent2(3)) {
            pool_whole_window<3>(corner, in.w * in.width, in.width, strip, to + target, place + target);
            continue;
          }
          for_each_strip(out.width, strip, [=](int64_t begin) {
            float best[Width::kMost];
            int32_t winner[Width::kMost];
#pragma omp simd
            for (int64_t c = 0; c < strip.count(); ++c) {
              best[c] = load(corner + begin + c);
              winner[c] = first;
            }
            for (int64_t h = rows.first; h < rows.last; ++h)
              for (int64_t w = columns.first; w < columns.last; ++w) {
                const T* point = from + ((plane * in.h + h) * in.w + w) * in.width + begin;
                const auto here = static_cast<int32_t>((h - rows.origin) * geometry.window.w + w - columns.origin);
#pragma omp simd
                for (int64_t c = 0; c < strip.count(); ++c) meet(load(point + c), here, best[c], winner[c]);
              }
#pragma omp simd
            for (int64_t c = 0; c < strip.count(); ++c) {
              store(to + target + begin + c, best[c]);
              place[target + begin + c] = static_cast<P>(winner[c]);
            }
          });
        }
      });
    });
  });
}

// If windows overlap, each element of dx gathers from the windows that hold it, so no two threads write one element.
void max_pool2d_backward(const Tensor& dy, const Tensor& where, const PoolGeometry& geometry, Tensor& dx) {
  const Tensor d_out = dy.to(dx.format()), winners = where.to(dx.format());
  visit_fast(dy.dtype(), "max_pool2d_backward", [&]<class T>(T) {
    const PointGrid in = point_grid(dx), out = point_grid(d_out);
    const T* from = d_out.data<T>();
    T* to = dx.data<T>();
    visit_strips(winners, in.width, [&]<class Width>(const auto* place, Width strip) {
      if (windows_are_apart(geometry, in, out) && !std::is_same_v<Width, ShortStrip>)
        return write_by_windows(geometry, in, out, strip, to, [=](int64_t i, int32_t here) {
          const float d = load(from + i);  // before the choice, so that it is one plain load
          return static_cast<int32_t>(place[i]) == here ? d : 0.0f;
        });
      for_each_grid_row(in, [=](int64_t plane, int64_t h) {
        const CoveringSpan rows(h, geometry.window.h, geometry.stride.h, geometry.padding.h, out.h);
        CoveringSpan columns(0, geometry.window.w, geometry.stride.w, geometry.padding.w, out.w);
        for (int64_t w = 0; w < in.w; ++w, columns.advance()) {
          T* target = to + ((plane * in.h + h) * in.w + w) * in.width;
          for_each_strip(in.width, strip, [=](int64_t begin) {
            float sum[Width::kMost] = {};
            for (int64_t i = rows.first; i < rows.last; ++i)
              for (int64_t j = columns.first; j < columns.last; ++j) {
                const int64_t source = ((plane * out.h + i) * out.w + j) * out.width + begin;
                const int64_t row = h - i * geometry.stride.h + geometry.padding.h;
                const int64_t column = w - j * geometry.stride.w + geometry.padding.w;
                const auto here = static_cast<int32_t>(row * geometry.window.w + column);
#pragma omp simd
                for (int64_t c = 0; c < strip.count(); ++c) {
                  const float d = load(from + source + c);
                  sum[c] += static_cast<int32_t>(place[source + c]) == here ? d : 0.0f;
                }
              }
#pragma omp simd
            for (int64_t c = 0; c < strip.count(); ++c) store(target + begin + c, sum[c]);
          });
        }
      });
    });
  });
}

}  // namespace

void provide_pooling() {
  kernels::max_pool2d.provide(Target::cpu, max_pool2d);
  kernels::max_pool2d_backward.provide(Target::cpu, max_pool2d_backward);
  kernels::average_pool2d.provide(Target::cpu, average_pool2d);
  kernels::average_pool2d_backward.provide(Target::cpu, average_pool2d_backward);
}

}  // namespace tern::cpu
