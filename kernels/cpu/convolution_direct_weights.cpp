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
};

/// dy of a few images, readable in whole vectors at every pixel and column of a group. If pixels would fall into the
/// same few sets of the cache, and there are enough products to pay for a copy, it copies dy to spread the pixels.
class ReadableGradient {
 public:
  /// `scratch` must hold `scratch_floats(images)` floats if a block has at most `images` images.
  ReadableGradient(const Tensor& dy, const WeightSums& sums, float* scratch)
      : dy_(dy), pixel_(dy.size(1)), image_(dy.size(2) * dy.size(3)), scratch_(scratch) {
    const int64_t tail = simd::kernels().tail;
    const bool collides = pixel_ % 64 == 0 && sums.window() * sums.in >= 256;
    copies_ = sums.out % tail != 0 || collides;
    if (copies_) pixel_ += tail;
  }

  int64_t scratch_floats(int64_t images) const { return copies_ ? images * image_ * pixel_ : 0; }
  int64_t pixel_stride() const { return pixel_; }
  const float* block(int64_t first, int64_t count) {
    const int64_t channels = dy_.size(1);
    const float* source = dy_.data<float>() + first * image_ * channels;
    if (!copies_) return source;
    float* target = scratch_;
    for (int64_t i = 0; i < count * image_; ++i) {
      std::copy_n(source + i * channels, channels, target + i * pixel_);
      std::fill_n(target + i * pixel_ + channels, pixel_ - channels, 0.0f);
    }
    return target;
  }

 private:
  const Tensor& dy_;
  int64_t pixel_, image_;
  bool copies_;
  float* scratch_;
};

/// Number of products: one for each group, kernel row and panel of columns. If a row cannot be one product, each entry
/// of the kernel has its own.
int64_t unit_count(const WeightSums& s) {
  return s.groups * (s.whole_rows() ? static_cast<int64_t>(s.h.taps.size()) : s.window()) * s.panels();
}

/// Computes the sums of units [first_unit, last_unit) over the images [begin, end).
void sum_images(PaddedImages images, ReadableGradient gradient, const WeightSums& s, int64_t begin, int64_t end,
                int64_t first_unit, int64_t last_unit, float* sums) {
  const int64_t pixel = s.groups * s.in, taps_w = static_cast<int64_t>(s.w.taps.size());
  const int64_t rows_per_tile = std::max<int64_t>(1, kPixels / s.w.outputs);
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
    const float* gradients = gradient.block(first, count);
    const int64_t rows = count * s.h.outputs;
    for (int64_t row = 0; row < rows; row += rows_per_tile) {
      product.segments = std::min(rows_per_tile, rows - row);
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
        product.b = gradients + row * s.w.outputs * gradient.pixel_stride() + group * s.out + column;
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
  ThreadScratch gradient_scratch(ReadableGradient(dy, s, nullptr).scratch_floats(padded.images_per_block()));
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
