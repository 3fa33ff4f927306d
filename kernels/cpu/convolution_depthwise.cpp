#include <algorithm>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/column_sums.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {
namespace {

using simd::Tap;

/// The taps inside the source for each output place of one axis, one place after another.
struct AxisTaps {
  /// If `backward`, the outputs are the places of the input of a convolution, and the source is its output.
  AxisTaps(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
           bool backward) {
    std::vector<std::vector<Tap>> lists(static_cast<size_t>(backward ? inputs : outputs));
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t i = o * stride - padding + k * dilation;
        if (i < 0 || i >= inputs) continue;
        const int64_t place = backward ? i : o, source = backward ? o : i;
        lists[static_cast<size_t>(place)].push_back({static_cast<int32_t>(source), static_cast<int32_t>(k)});
      }
    for (const auto& list : lists) {
      taps.insert(taps.end(), list.begin(), list.end());
      ends.push_back(std::ssize(taps));
    }
  }
  const Tap* begin(int64_t place) const {
    return taps.data() + (place == 0 ? 0 : ends[static_cast<size_t>(place) - 1]);
  }
  const Tap* end(int64_t place) const { return taps.data() + ends[static_cast<size_t>(place)]; }

  std::vector<Tap> taps;
  std::vector<int64_t> ends;
};

/// The rows and the columns of a convolution of x that gives y, or of its gradient by x.
struct Taps {
  Taps(const Tensor& x, const Tensor& y, const Shape& w, const ConvGeometry& g, bool backward)
      : rows(x.size(2), y.size(2), w[2], g.stride.h, g.padding.h, g.dilation.h, backward),
        columns(x.size(3), y.size(3), w[3], g.stride.w, g.padding.w, g.dilation.w, backward) {}
  AxisTaps rows, columns;
};

/// Copies [outer, inner] as [inner, outer].
void exchange(const Tensor& from, int64_t outer, int64_t inner, const Tensor& to) {
  const float* in = from.data<float>();
  float* out = to.data<float>();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) out[i * outer + o] = in[o * inner + i];
}

void correlate(const Tensor& source, const Tensor& w, const Taps& taps, const float* bias, bool relu, Tensor& y) {
  const int64_t channels = y.size(1), height = y.size(2), width = y.size(3), window = w.size(2) * w.size(3);
  const Tensor weights = Tensor::empty({window, channels});
  exchange(w, channels, window, weights);
  const int64_t source_row = source.size(3) * channels, source_image = source.size(2) * source_row;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width * channels * window));
  parallel_for(0, y.size(0) * height, grain, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      simd::kernels().depthwise_row({.channels = channels,
                                     .width = width,
                                     .source = source.data<float>() + unit / height * source_image,
                                     .source_row = source_row,
                                     .weights = weights.data<float>(),
                                     .window_w = w.size(3),
                                     .bias = bias,
                                     .relu = relu,
                                     .taps = taps.rows.begin(unit % height),
                                     .taps_end = taps.rows.end(unit % height),
                                     .columns = taps.columns.taps.data(),
                                     .column_ends = taps.columns.ends.data(),
                                     .y = y.data<float>() + unit * width * channels});
  });
}

}  // namespace

bool depthwise_applies(const Shape& w, const ConvGeometry& geometry) {
  return w[1] == 1 && w[0] == geometry.groups && geometry.groups > 1;
}

void depthwise_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry& geometry, bool relu,
                       Tensor& y) {
  correlate(x, w, Taps(x, y, w.shape(), geometry, false), bias.defined() ? bias.data<float>() : nullptr, relu, y);
}

void depthwise_backward_data(const Tensor& dy, const Tensor& w, const ConvGeometry& geometry, Tensor& dx) {
  correlate(dy, w, Taps(dx, dy, w.shape(), geometry, true), nullptr, false, dx);
}

// Bands of rows have sums of their own, which are then added. Their number depends on the shape alone, so the result is
// the same for any number of threads.
void depthwise_backward_weights(const Tensor& dy, const Tensor& x, const ConvGeometry& geometry, Tensor& dw) {
  constexpr int64_t kUnits = 64;
  const int64_t images = dy.size(0), channels = dy.size(1), height = dy.size(2), width = dy.size(3);
  const int64_t window_w = dw.size(3), window = dw.size(2) * window_w, inputs = x.size(3);
  const int64_t bands = std::clamp<int64_t>(kUnits / images, 1, height), band = (height + bands - 1) / bands;
  const int64_t step = geometry.stride.w, x_row = inputs * channels;
  const Taps taps(x, dy, dw.shape(), geometry, false);
  const Tensor sums = Tensor::zeros({images * bands, window, channels});
  parallel_for(0, images * bands, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t image = unit / bands, last = std::min(height, (unit % bands + 1) * band);
      for (int64_t i = unit % bands * band; i < last; ++i)
        for (const Tap* tap = taps.rows.begin(i); tap != taps.rows.end(i); ++tap)
          for (int64_t k = 0; k < window_w; ++k) {
            // The inputs are o·step - low. These are the outputs o whose input is inside.
            const int64_t low = geometry.padding.w - k * geometry.dilation.w, high = inputs - 1 + low;
            const int64_t from = low <= 0 ? 0 : (low + step - 1) / step,
                          until = high < 0 ? 0 : std::min(width, high / step + 1);
            if (from >= until) continue;
            simd::kernels().depthwise_weights(
                x.data<float>() + (image * x.size(2) + tap->source) * x_row + (from * step - low) * channels,
                step * channels, dy.data<float>() + ((image * height + i) * width + from) * channels, until - from,
                channels, sums.data<float>() + (unit * window + tap->kernel * window_w + k) * channels);
          }
    }
  });
  const Tensor total = Tensor::empty({window, channels});
  column_sums(sums.data<float>(), 1, images * bands, window * channels, total.data<float>());
  exchange(total, window, channels, dw);
}

}  // namespace tern::cpu
