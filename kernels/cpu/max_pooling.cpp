#include <type_traits>

#include "tern/kernels/cpu/pool_windows.h"
#include "tern/kernels/cpu/pooling.h"

namespace tern::cpu {

using kernels::Extent2;
using kernels::PoolGeometry;

namespace {

constexpr int64_t kBlock = 8;

/// Calls strip(begin, count) for all `width` elements of a point: eight at a time where there are as many, the last
/// eight overlapping those before, which are then computed again.
template <class Strip>
void for_each_strip(int64_t width, Strip strip) {
  if (width < kBlock) return strip(0, width);
  for (int64_t block = 0; block < width; block += kBlock)
    strip(std::min(block, width - kBlock), std::integral_constant<int64_t, kBlock>());
}

}  // namespace

void max_pool2d(const Tensor& x, const PoolGeometry& geometry, Tensor& y, Tensor& where) {
  visit_fast(x.dtype(), "max_pool2d", [&]<class T>(T) {
    const PointGrid in = point_grid(x), out = point_grid(y);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    auto* place = where.data<uint8_t>();
    for_each_grid_row(out, [=](int64_t plane, int64_t i) {
      const Span rows = window_span(i, geometry.window.h, geometry.stride.h, geometry.padding.h, in.h);
      for (int64_t j = 0; j < out.w; ++j) {
        const Span columns = window_span(j, geometry.window.w, geometry.stride.w, geometry.padding.w, in.w);
        const auto first =
            static_cast<int32_t>((rows.first - rows.origin) * geometry.window.w + columns.first - columns.origin);
        const T* corner = from + ((plane * in.h + rows.first) * in.w + columns.first) * in.width;
        const int64_t target = ((plane * out.h + i) * out.w + j) * out.width;
        for_each_strip(out.width, [=](int64_t begin, auto count) {
          float best[kBlock];
          int32_t winner[kBlock];
#pragma omp simd
          for (int64_t c = 0; c < count; ++c) {
            best[c] = load(corner + begin + c);
            winner[c] = first;
          }
          for (int64_t h = rows.first; h < rows.last; ++h)
            for (int64_t w = columns.first; w < columns.last; ++w) {
              const T* point = from + ((plane * in.h + h) * in.w + w) * in.width + begin;
              const auto here = static_cast<int32_t>((h - rows.origin) * geometry.window.w + w - columns.origin);
#pragma omp simd
              for (int64_t c = 0; c < count; ++c) {
                const float value = load(point + c);
                const bool wins = (value > best[c]) | (value != value);
                best[c] = wins ? value : best[c];
                winner[c] = wins ? here : winner[c];
              }
            }
#pragma omp simd
          for (int64_t c = 0; c < count; ++c) {
            store(to + target + begin + c, best[c]);
            place[target + begin + c] = static_cast<uint8_t>(winner[c]);
          }
        });
      }
    });
  });
}

namespace {

/// Whether the windows tile the input: each of its elements lies in exactly one.
bool windows_tile(const PoolGeometry& geometry, const PointGrid& in, const PointGrid& out) {
  return geometry.window == geometry.stride && geometry.padding == Extent2(0) && in.h == out.h * geometry.window.h &&
         in.w == out.w * geometry.window.w;
}

/// Each window hands its gradient to its winner and zeros to the rest.
template <class T>
void scatter_to_winners(const T* from, const uint8_t* place, const PoolGeometry& geometry, const PointGrid& in,
                        const PointGrid& out, T* to) {
  for_each_grid_row(out, [=](int64_t plane, int64_t i) {
    for (int64_t row = 0; row < geometry.window.h; ++row)
      for (int64_t j = 0; j < out.w; ++j) {
        const int64_t source = ((plane * out.h + i) * out.w + j) * out.width;
        T* target = to + ((plane * in.h + i * geometry.window.h + row) * in.w + j * geometry.window.w) * in.width;
        for (int64_t column = 0; column < geometry.window.w; ++column, target += in.width) {
          const auto here = static_cast<int32_t>(row * geometry.window.w + column);
          for_each_strip(in.width, [=](int64_t begin, auto count) {
#pragma omp simd
            for (int64_t c = begin; c < begin + count; ++c) {
              const float d = load(from + source + c);  // before the choice, so that it is one plain load
              store(target + c, int32_t{place[source + c]} == here ? d : 0.0f);
            }
          });
        }
      }
  });
}

}  // namespace

// Where windows overlap, each element of dx gathers from those that hold it, so no two threads write one element.
void max_pool2d_backward(const Tensor& dy, const Tensor& where, const PoolGeometry& geometry, Tensor& dx) {
  const Tensor d_out = dy.to(dx.format()), winners = where.to(dx.format());
  visit_fast(dy.dtype(), "max_pool2d_backward", [&]<class T>(T) {
    const PointGrid in = point_grid(dx), out = point_grid(d_out);
    const T* from = d_out.data<T>();
    const auto* place = winners.data<uint8_t>();
    T* to = dx.data<T>();
    if (windows_tile(geometry, in, out) && in.width >= kBlock)
      return scatter_to_winners(from, place, geometry, in, out, to);
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
              const int64_t source = ((plane * out.h + i) * out.w + j) * out.width + begin;
              const int64_t row = h - i * geometry.stride.h + geometry.padding.h;
              const int64_t column = w - j * geometry.stride.w + geometry.padding.w;
              const auto here = static_cast<int32_t>(row * geometry.window.w + column);
#pragma omp simd
              for (int64_t c = 0; c < width; ++c) {
                const float d = load(from + source + c);
                sum[c] += int32_t{place[source + c]} == here ? d : 0.0f;
              }
            }
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) store(target + begin + c, sum[c]);
        }
      }
    });
  });
}

}  // namespace tern::cpu
