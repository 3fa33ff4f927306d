#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/cpu/correlation.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {
namespace {

/// Number of pixels of dy to sum before the accumulators are loaded again. These pixels and their inputs stay in the
/// first-level cache.
constexpr int64_t kPixels = 96;
/// Each thread has its own accumulators if they take at most this many floats. Otherwise all threads share one copy,
/// and each thread computes its own part of it.
constexpr int64_t kPrivateFloats = 1 << 17;

/// dw as sums over pixels, in the layout of the products: [group][kernel row][kernel column][in][columns()].
struct WeightSums {
  CorrelationAxis h, w;
  int64_t groups, in, out;  ///< channels of one group

  int64_t panel_columns() const { return 2 * simd::kernels().width; }
  int64_t panels() const { return (out + panel_columns() - 1) / panel_columns(); }
  int64_t columns() const { return panels() * panel_columns(); }
  int64_t window() const { return static_cast<int64_t>(h.taps.size() * w.taps.size()); }
  int64_t numel() const { return groups * window() * in * columns(); }
  bool whole_rows() const { return groups == 1 && w.contiguous(); }
  int64_t rows_per_tile() const { return std::max<int64_t>(1, kPixels / w.outputs); }
};

/// Rows of dy, readable in whole vectors at every pixel and column of a group. A vector may end in the next pixel; the
/// products do not store such columns. The last rows are copied, because a vector would end beyond the tensor. All rows
/// are copied if their pixels would fall into the same few sets of the cache, and there are enough products to
/// pay for the copy.
class ReadableRows {
 public:
  /// `scratch` must hold `scratch_floats(rows)` floats if `take` is called for at most `rows` rows.
  ReadableRows(const Tensor& dy, const WeightSums& sums, float* scratch)
      : dy_(dy.data<float>()),
        rows_(dy.size(0) * dy.size(2)),
        width_(dy.size(3)),
        channels_(dy.size(1)),
        spread_(channels_ % 64 == 0 && sums.window() * sums.in >= 256),
        pixel_(channels_ + (spread_ ? tail_ : 0)),
        scratch_(scratch) {}

  int64_t scratch_floats(int64_t rows) const { return rows * width_ * pixel_ + tail_; }
  int64_t pixel_stride() const { return pixel_; }
  /// `count` rows from row `first` of all images on, valid until the next call.
  const float* take(int64_t first, int64_t count) const {
    const float* source = dy_ + first * width_ * channels_;
    if (!spread_ && (rows_ - first - count) * width_ * channels_ >= tail_) return source;
    float* target = scratch_;
    for (int64_t i = 0; i < count * width_; ++i, source += channels_, target += pixel_)
      std::copy_n(source, channels_, target);
    return scratch_;
  }

 private:
  const int64_t tail_ = simd::kernels().tail;
  const float* dy_;
  int64_t rows_, width_, channels_;
  bool spread_;
  int64_t pixel_;  ///< floats from one pixel to the next
  float* scratch_;
};

/// Number of products: one for each group, kernel row and panel of columns. If a row cannot be one product, each entry
/// of the kernel has its own.
int64_t unit_count(const WeightSums& s) {
  return s.groups * (s.whole_rows() ? static_cast<int64_t>(s.h.taps.size()) : s.window()) * s.panels();
}

/// Computes the sums of units [first_unit, last_unit) over the images [begin, end).
void sum_images(PaddedImages images, const ReadableRows& gradient, const WeightSums& s, int64_t begin, int64_t end,
                int64_t first_unit, int64_t last_unit, float* sums) {
  const int64_t pixel = s.groups * s.in, taps_w = static_cast<int64_t>(s.w.taps.size());
  const int64_t rows_per_tile = s.rows_per_tile();
  std::vector<int64_t> offsets(static_cast<size_t>(rows_per_tile));
  simd::Product product{.rows = s.in * (s.whole_rows() ? taps_w : 1),
                        .depth = s.w.outputs,
                        .a_row = 1,
                        .a_depth = s.w.step * pixel,
                        .a_offsets = offsets.data(),
                        .b_row = gradient.pixel_stride(),
                        .c_row = s.columns()};
  for (int64_t first = begin; first < end; first += images.images_per_block()) {
    const int64_t count = std::min(images.images_per_block(), end - first);
    const float* block = images.block(first, count);
    const int64_t rows = count * s.h.outputs;
    for (int64_t row = 0; row < rows; row += rows_per_tile) {
      product.segments = std::min(rows_per_tile, rows - row);
      const float* gradients = gradient.take(first * s.h.outputs + row, product.segments);
      for (int64_t i = 0; i < product.segments; ++i) {
        offsets[static_cast<size_t>(i)] =
            (row + i) / s.h.outputs * images.image_stride() + (row + i) % s.h.outputs * s.h.step * images.row_stride();
      }
      product.accumulate = first != begin || row != 0;
      for (int64_t unit = first_unit; unit < last_unit; ++unit) {
        const int64_t column = unit % s.panels() * s.panel_columns(), part = unit / s.panels();
        const int64_t taps = s.whole_rows() ? part * taps_w : part % s.window(), group = part / s.window();
        const int64_t kh = taps / taps_w, kw = taps % taps_w;
        product.columns = std::min(s.panel_columns(), s.out - column);
        product.a = block + (s.h.taps[kh] - s.h.begin()) * images.row_stride() + (s.w.taps[kw] - s.w.begin()) * pixel +
                    group * s.in;
        product.b = gradients + group * s.out + column;
        product.c = sums + (group * s.window() + taps) * s.in * s.columns() + column;
        simd::kernels().multiply(product);
      }
    }
  }
}

/// dw[o][i][kh][kw] = Σ over the parts of `sums`.
void write_weights(const WeightSums& s, const Tensor& sums, Tensor& dw) {
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (s.out + kBlock - 1) / kBlock, parts = sums.size(0);
  parallel_for(0, s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t group = unit / blocks, first = unit % blocks * kBlock, count = std::min(kBlock, s.out - first);
      const float* source = sums.data<float>() + group * s.window() * s.in * s.columns() + first;
      float* target = dw.data<float>() + (group * s.out + first) * s.in * s.window();
      for (int64_t i = 0; i < s.in; ++i) {
        for (int64_t t = 0; t < s.window(); ++t) {
          float total[kBlock] = {};
          for (int64_t part = 0; part < parts; ++part) {
            const float* from = source + part * s.numel() + (t * s.in + i) * s.columns();
            for (int64_t o = 0; o < count; ++o) total[o] += from[o];
          }
          for (int64_t o = 0; o < count; ++o) target[(o * s.in + i) * s.window() + t] = total[o];
        }
      }
    }
  });
}

}  // namespace

void direct_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw) {
  const auto& [stride, padding, dilation, groups] = geometry;
  const WeightSums s{.h = forward_axis(x.size(2), dy.size(2), dw.size(2), stride.h, padding.h, dilation.h),
                     .w = forward_axis(x.size(3), dy.size(3), dw.size(3), stride.w, padding.w, dilation.w),
                     .groups = groups,
                     .in = dw.size(1),
                     .out = dw.size(0) / groups};
  const int64_t images = x.size(0);
  const PaddedImages padded(x, s.h, s.w, nullptr);
  ThreadScratch image_scratch(padded.scratch_floats());
  ThreadScratch gradient_scratch(ReadableRows(dy, s, nullptr).scratch_floats(s.rows_per_tile()));
  if (s.numel() <= kPrivateFloats) {
    const int64_t parts = std::min<int64_t>(thread_count(), images);
    const Tensor sums = Tensor::empty({parts, s.numel()});
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      float *const image_floats = image_scratch.take(), *const gradient_floats = gradient_scratch.take();
      for (int64_t part = begin; part < end; ++part) {
        sum_images({x, s.h, s.w, image_floats}, {dy, s, gradient_floats}, s, images * part / parts,
                   images * (part + 1) / parts, 0, unit_count(s), sums.data<float>() + part * s.numel());
      }
    });
    write_weights(s, sums, dw);
  } else {
    const Tensor sums = Tensor::empty({1, s.numel()});
    parallel_for(0, unit_count(s), 1, [&](int64_t begin, int64_t end) {
      sum_images({x, s.h, s.w, image_scratch.take()}, {dy, s, gradient_scratch.take()}, s, 0, images, begin, end,
                 sums.data<float>());
    });
    write_weights(s, sums, dw);
  }
}

}  // namespace tern::cpu
