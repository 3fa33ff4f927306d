#include "tern/kernels/cpu/pool_windows.h"
#include "tern/kernels/cpu/pooling.h"

namespace tern::cpu {
namespace {

using kernels::PoolGeometry;

/// What the sum over a window is multiplied by.
float window_scale(const PoolGeometry& geometry, const Span& rows, const Span& columns, const PointGrid& in) {
  if (!geometry.count_include_pad)
    return 1.0f / static_cast<float>((rows.last - rows.first) * (columns.last - columns.first));
  const int64_t h = std::min(rows.origin + geometry.window.h, in.h + geometry.padding.h) - rows.origin;
  const int64_t w = std::min(columns.origin + geometry.window.w, in.w + geometry.padding.w) - columns.origin;
  return 1.0f / static_cast<float>(h * w);
}

}  // namespace

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
        T* target = to + ((plane * out.h + i) * out.w + j) * out.width;
        for (int64_t begin = 0; begin < out.width; begin += kPoolStrip) {
          const int64_t width = std::min(kPoolStrip, out.width - begin);
          float sum[kPoolStrip] = {};
          for (int64_t h = rows.first; h < rows.last; ++h)
            for (int64_t w = columns.first; w < columns.last; ++w) {
              const T* point = from + ((plane * in.h + h) * in.w + w) * in.width + begin;
#pragma omp simd
              for (int64_t c = 0; c < width; ++c) sum[c] += load(point + c);
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

}  // namespace tern::cpu
