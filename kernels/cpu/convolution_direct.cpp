#include "tern/kernels/cpu/convolution.h"

#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/correlation.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {
namespace {

/// The channels of one group: the number that a correlation reads (`in`) and writes (`out`), and their strides in w.
struct Channels {
  int64_t groups, in, out;
  int64_t in_stride, out_stride;  ///< distance in floats between neighbours in w
};

Channels forward_channels(const Tensor& w, int64_t groups) {
  const int64_t window = w.size(2) * w.size(3);
  return {groups, w.size(1), w.size(0) / groups, window, w.size(1) * window};
}

Channels backward_channels(const Tensor& w, int64_t groups) {
  const int64_t window = w.size(2) * w.size(3);
  return {groups, w.size(0) / groups, w.size(1), w.size(1) * window, window};
}

struct Correlation {
  CorrelationAxis h, w;
  Channels channels;
  const float* bias = nullptr;
  bool relu = false;

  int64_t panel_columns() const { return 2 * simd::kernels().width; }
  int64_t panels() const { return (channels.out + panel_columns() - 1) / panel_columns(); }
  /// Number of rows in a panel of weights: one for every tap and input channel.
  int64_t panel_rows() const { return static_cast<int64_t>(h.taps.size() * w.taps.size()) * channels.in; }
};

/// [group][panel][tap h][tap w][in][panel_columns()], with zeros after the last output channel.
Tensor pack_weights(const Tensor& weights, const Correlation& correlation) {
  const Channels c = correlation.channels;
  const int64_t columns = correlation.panel_columns(), panels = correlation.panels();
  const int64_t window_w = weights.size(3), group_stride = weights.numel() / c.groups;
  Tensor packed = Tensor::empty({c.groups * panels, correlation.panel_rows(), columns});
  parallel_for(0, c.groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % panels * columns, valid = std::min(columns, c.out - first);
      const float* source = weights.data<float>() + unit / panels * group_stride + first * c.out_stride;
      float* target = packed.data<float>() + unit * correlation.panel_rows() * columns;
      for (const int64_t kh : correlation.h.kernel) {
        for (const int64_t kw : correlation.w.kernel) {
          for (int64_t i = 0; i < c.in; ++i, target += columns) {
            const float* from = source + i * c.in_stride + kh * window_w + kw;
            for (int64_t o = 0; o < valid; ++o) target[o] = from[o * c.out_stride];
            std::fill(target + valid, target + columns, 0.0f);
          }
        }
      }
    }
  });
  return packed;
}

/// The offsets of the segments of a product. A segment is one row of the kernel if its taps and channels are
/// contiguous; otherwise it is one tap.
std::vector<int64_t> segment_offsets(const Correlation& c, bool whole_rows, int64_t row_stride, int64_t pixel) {
  std::vector<int64_t> offsets;
  for (const int64_t row : c.h.taps) {
    for (const int64_t column : c.w.taps) {
      offsets.push_back((row - c.h.begin()) * row_stride + (column - c.w.begin()) * pixel);
      if (whole_rows) break;
    }
  }
  return offsets;
}

void correlate_images(const Tensor& in, const Correlation& c, const Tensor& packed, Tensor& out, int64_t begin,
                      int64_t end, float* scratch) {
  PaddedImages images(in, c.h, c.w, scratch);
  const int64_t in_pixel = in.size(1), out_pixel = out.size(1);
  const int64_t out_height = out.size(2), out_width = out.size(3);
  const int64_t columns = c.panel_columns(), panels = c.panels();
  const bool whole_rows = c.channels.groups == 1 && c.w.contiguous();
  const auto offsets = segment_offsets(c, whole_rows, images.row_stride(), in_pixel);
  simd::Product product{.rows = c.w.outputs,
                        .depth = c.channels.in * (whole_rows ? static_cast<int64_t>(c.w.taps.size()) : 1),
                        .a_row = c.w.step * in_pixel,
                        .a_offsets = offsets.data(),
                        .segments = static_cast<int64_t>(offsets.size()),
                        .b_row = columns,
                        .c_row = c.w.output_step * out_pixel,
                        .relu = c.relu};
  for (int64_t first = begin; first < end; first += images.images_per_block()) {
    const int64_t count = std::min(images.images_per_block(), end - first);
    const float* block = images.block(first, count);
    // All rows of the block use one panel of weights while it is in the cache.
    for (int64_t unit = 0; unit < c.channels.groups * panels; ++unit) {
      const int64_t group = unit / panels, column = unit % panels * columns;
      const int64_t channel = group * c.channels.out + column;
      product.columns = std::min(columns, c.channels.out - column);
      product.b = packed.data<float>() + unit * c.panel_rows() * columns;
      product.bias = c.bias ? c.bias + channel : nullptr;
      for (int64_t row = 0; row < count * c.h.outputs; ++row) {
        const int64_t image = row / c.h.outputs, i = row % c.h.outputs;
        const int64_t out_row = (first + image) * out_height + c.h.first_output + i * c.h.output_step;
        product.a = block + image * images.image_stride() + i * c.h.step * images.row_stride() + group * c.channels.in;
        product.c = out.data<float>() + (out_row * out_width + c.w.first_output) * out_pixel + channel;
        simd::kernels().multiply(product);
      }
    }
  }
}

void correlate(const Tensor& in, const Tensor& weights, const Correlation& correlation, Tensor& out) {
  const Tensor packed = pack_weights(weights, correlation);
  ThreadScratch scratch(PaddedImages(in, correlation.h, correlation.w, nullptr).scratch_floats());
  parallel_for(0, in.size(0), 1, [&](int64_t begin, int64_t end) {
    correlate_images(in, correlation, packed, out, begin, end, scratch.take());
  });
}

}  // namespace

void direct_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry,
                    bool relu, Tensor& y) {
  const auto& [stride, padding, dilation, groups] = geometry;
  correlate(x, w,
            {.h = forward_axis(x.size(2), y.size(2), w.size(2), stride.h, padding.h, dilation.h),
             .w = forward_axis(x.size(3), y.size(3), w.size(3), stride.w, padding.w, dilation.w),
             .channels = forward_channels(w, groups),
             .bias = bias.defined() ? bias.data<float>() : nullptr,
             .relu = relu},
            y);
}

void direct_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  const auto& [stride, padding, dilation, groups] = geometry;
  const auto rows = backward_axes(dx.size(2), dy.size(2), w.size(2), stride.h, padding.h, dilation.h);
  const auto columns = backward_axes(dx.size(3), dy.size(3), w.size(3), stride.w, padding.w, dilation.w);
  const int64_t residues = std::min(stride.h, dx.size(2)) * std::min(stride.w, dx.size(3));
  if (static_cast<int64_t>(rows.size() * columns.size()) < residues) dx.fill(0);
  for (const auto& row : rows) {
    for (const auto& column : columns) {
      correlate(dy, w, {.h = row, .w = column, .channels = backward_channels(w, groups)}, dx);
    }
  }
}

}  // namespace tern::cpu
