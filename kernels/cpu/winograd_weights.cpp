#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/convolution.h"
#include "tern/kernels/cpu/winograd_tiles.h"

namespace tern::cpu {
namespace {

/// The number of tiles to sum before the sums are loaded again. For middle-sized layers, the sums exceed the
/// second-level cache.
constexpr int64_t kGradientBlockTiles = 96;
/// Each thread sums at least this many tiles.
constexpr int64_t kPartTiles = 24;
/// Each thread has its own sums if they take at most this many floats; otherwise all threads share one copy.
constexpr int64_t kPrivateFloats = 1 << 20;
constexpr int64_t kGradientSharedTiles = 192;

/// The gradient of the weights: at every point, the sum over all tiles of patchᵀ · dy.
class WinogradGradient {
 public:
  WinogradGradient(const Tensor& dy, const Tensor& x, int64_t taps, int64_t padding)
      : transforms_(winograd_transforms(taps)),
        in_(x.size(1)),
        out_(dy.size(1)),
        grid_(dy, transforms_.outputs),
        patches_(x, transforms_.side, transforms_.outputs, padding),
        gradients_(dy, transforms_.outputs, transforms_.outputs, 0),
        sums_(points(), in_, out_) {}

  int64_t tiles() const { return grid_.count(); }
  int64_t points() const { return transforms_.side * transforms_.side; }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  /// The layout of the sums, [in, out] at every point.
  const PointLayout& sums() const { return sums_; }

  void transform(int64_t begin, int64_t end, const PointLayout& x, float* patches, const PointLayout& dy,
                 float* gradients) const {
    const float* pixels[TiledImages::kMaxPixels];
    grid_.visit(begin, end, [&](const TilePlace& at, const TilePlace& ahead) {
      patches_.prefetch(ahead);
      gradients_.prefetch(ahead);
      patches_.readable(at, pixels);
      transforms_.patch(pixels, in_, patches, x.point());
      gradients_.readable(at, pixels);
      transforms_.gradient(pixels, out_, gradients, dy.point());
      patches += x.row();
      gradients += dy.row();
    });
  }
  void multiply(int64_t point, int64_t tiles, const PointLayout& x, const float* patches, const PointLayout& dy,
                const float* gradients, bool accumulate, float* sums) const {
    const int64_t width = simd::kernels().width;
    simd::kernels().multiply({.rows = in_,
                              .columns = PointLayout::round_up(out_, simd::kernels().tail),
                              .depth = tiles,
                              .a = patches + point * x.point(),
                              .a_row = 1,
                              .a_depth = x.row(),
                              .b = gradients + point * dy.point(),
                              .b_row = dy.row(),
                              .b_panel = 2 * width,
                              .c = sums + point * sums_.point(),
                              .c_row = sums_.row(),
                              .accumulate = accumulate});
  }
  /// Writes dw from `sums`, the total over all tiles.
  void write_weights(const float* sums, Tensor& dw) const;

 private:
  const simd::WinogradTransforms& transforms_;
  int64_t in_, out_;
  TileGrid grid_;
  TiledImages patches_, gradients_;
  PointLayout sums_;
};

void WinogradGradient::write_weights(const float* sums, Tensor& dw) const {
  constexpr int64_t kColumns = 32, kMaxWindow = 25;
  const int64_t window = transforms_.taps * transforms_.taps, blocks = (out_ + kColumns - 1) / kColumns;
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    float taps[kMaxWindow * kColumns];
    float* pixels[kMaxWindow];
    for (int64_t t = 0; t < window; ++t) pixels[t] = taps + t * kColumns;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kColumns, count = std::min(kColumns, out_ - first);
      for (int64_t i = 0; i < in_; ++i) {
        transforms_.weights(sums + i * sums_.row() + first, sums_.point(), count, nullptr, false, pixels);
        float* target = dw.data<float>() + (first * in_ + i) * window;
        for (int64_t o = 0; o < count; ++o) {
          for (int64_t t = 0; t < window; ++t) target[o * in_ * window + t] = taps[t * kColumns + o];
        }
      }
    }
  });
}

/// Each thread sums blocks of its own tiles. The sums of the threads are added last, in order.
Tensor sum_by_tiles(const WinogradGradient& g) {
  const int64_t block = std::min(kGradientBlockTiles, g.tiles());
  const PointLayout x(g.points(), block, g.in()), dy(g.points(), block, g.out());
  const int64_t parts = std::clamp<int64_t>(g.tiles() / kPartTiles, 1, thread_count());
  const Tensor sums = Tensor::empty({parts, g.sums().numel()});
  float* const total = sums.data<float>();
  ThreadScratch patch_scratch(x.numel()), gradient_scratch(dy.numel());
  parallel_for(0, parts, 1, [&](int64_t begin_part, int64_t end_part) {
    float *const patches = patch_scratch.take(), *const gradients = gradient_scratch.take();
    for (int64_t part = begin_part; part < end_part; ++part) {
      const int64_t begin = g.tiles() * part / parts, end = g.tiles() * (part + 1) / parts;
      for (int64_t first = begin; first < end; first += block) {
        const int64_t count = std::min(block, end - first);
        g.transform(first, first + count, x, patches, dy, gradients);
        for (int64_t point = 0; point < g.points(); ++point) {
          g.multiply(point, count, x, patches, dy, gradients, first != begin, total + part * g.sums().numel());
        }
      }
    }
  });
  parallel_for(0, g.sums().numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t part = 1; part < parts; ++part) {
      const float* from = total + part * g.sums().numel();
      for (int64_t i = begin; i < end; ++i) total[i] += from[i];
    }
  });
  return sums;
}

/// All threads transform one larger block together. Then each thread adds the products at its own points.
Tensor sum_by_points(const WinogradGradient& g) {
  const int64_t block = std::min(kGradientSharedTiles, g.tiles());
  const PointLayout x(g.points(), block, g.in()), dy(g.points(), block, g.out());
  const Tensor patches = Tensor::empty({x.numel()}), gradients = Tensor::empty({dy.numel()});
  const Tensor sums = Tensor::empty({1, g.sums().numel()});
  float *const a = patches.data<float>(), *const b = gradients.data<float>();
  for (int64_t first = 0; first < g.tiles(); first += block) {
    const int64_t count = std::min(block, g.tiles() - first);
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      g.transform(first + begin, first + end, x, a + begin * x.row(), dy, b + begin * dy.row());
    });
    parallel_for(0, g.points(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t point = begin; point < end; ++point) {
        g.multiply(point, count, x, a, dy, b, first != 0, sums.data<float>());
      }
    });
  }
  return sums;
}

}  // namespace

void winograd_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw) {
  const WinogradGradient gradient(dy, x, dw.size(2), geometry.padding.h);
  const Tensor sums = gradient.sums().numel() <= kPrivateFloats ? sum_by_tiles(gradient) : sum_by_points(gradient);
  gradient.write_weights(sums.data<float>(), dw);
}

}  // namespace tern::cpu
