#include "tern/kernels/cpu/convolution.h"

#include <algorithm>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/winograd_tiles.h"

namespace tern::cpu {
namespace {

/// The number of tiles that a thread takes through all steps at a time. It is a multiple of every height of a product
/// tile. Blocks of 24 to 96 tiles are about equally fast.
constexpr int64_t kBlockTiles = 48;
/// If the transformed weights have more floats than this, all threads together read them once: each thread takes some
/// of the points.
constexpr int64_t kSharedFloats = 1'400'000;
constexpr int64_t kSharedTiles = 192;

/// The weights as the right factors of the products at the points: [point][panel of out][in][2·width].
class PointWeights {
 public:
  /// `backward`: exchanges the first two dimensions of w and rotates the kernel by 180 degrees.
  PointWeights(const Tensor& w, bool backward);

  const simd::WinogradTransforms& transforms() const { return transforms_; }
  int64_t points() const { return transforms_.side * transforms_.side; }
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t numel() const { return packed_.numel(); }
  simd::Product product(int64_t point) const;

 private:
  void transform(const Tensor& w, bool backward, int64_t panel);

  const simd::WinogradTransforms& transforms_;
  int64_t in_, out_;
  int64_t columns_ = 2 * simd::kernels().width;  ///< columns of a panel
  int64_t panel_, point_;                        ///< strides of panels and points, in floats
  Tensor packed_;
};

PointWeights::PointWeights(const Tensor& w, bool backward)
    : transforms_(winograd_transforms(w.size(2))),
      in_(w.size(backward ? 0 : 1)),
      out_(w.size(backward ? 1 : 0)),
      panel_(in_ * columns_) {
  const int64_t panels = PointLayout::round_up(out_, columns_) / columns_;
  point_ = PointLayout::distance(panels * panel_);
  packed_ = Tensor::empty({points() * point_});
  parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) transform(w, backward, panel);
  });
}

void PointWeights::transform(const Tensor& w, bool backward, int64_t panel) {
  constexpr int64_t kMaxColumns = 32;
  const int64_t window = w.size(2) * w.size(3);
  const int64_t in_stride = window * (backward ? w.size(1) : 1), out_stride = window * (backward ? 1 : w.size(1));
  const int64_t first = panel * columns_, valid = std::min(columns_, out_ - first);
  float taps[25 * kMaxColumns] = {};
  const float* pixels[25];
  for (int64_t t = 0; t < window; ++t) pixels[t] = taps + t * columns_;
  for (int64_t i = 0; i < in_; ++i) {
    const float* source = w.data<float>() + i * in_stride + first * out_stride;
    for (int64_t o = 0; o < valid; ++o) {
      for (int64_t t = 0; t < window; ++t) {
        taps[t * columns_ + o] = source[o * out_stride + (backward ? window - 1 - t : t)];
      }
    }
    transforms_.filter(pixels, columns_, packed_.data<float>() + panel * panel_ + i * columns_, point_);
  }
}

simd::Product PointWeights::product(int64_t point) const {
  return {.columns = PointLayout::round_up(out_, simd::kernels().tail),
          .depth = in_,
          .b = packed_.data<float>() + point * point_,
          .b_row = columns_,
          .b_panel = panel_};
}

/// out = the correlation of `in` with `weights`, in three steps. Each step takes a range of tiles.
class WinogradCorrelation {
 public:
  WinogradCorrelation(const Tensor& in, const PointWeights& weights, int64_t padding, Tensor& out)
      : weights_(weights),
        transforms_(weights.transforms()),
        grid_(out, transforms_.outputs),
        patches_(in, transforms_.side, transforms_.outputs, padding),
        outputs_(out, transforms_.outputs, transforms_.outputs, 0) {}

  int64_t tiles() const { return grid_.count(); }

  void transform_patches(int64_t begin, int64_t end, const PointLayout& layout, float* points) const {
    const float* pixels[TiledImages::kMaxPixels];
    grid_.visit(begin, end, [&](const TilePlace& at, const TilePlace& ahead) {
      patches_.prefetch(ahead);
      patches_.readable(at, pixels);
      transforms_.patch(pixels, weights_.in(), points, layout.point());
      points += layout.row();
    });
  }
  void multiply(int64_t point, int64_t tiles, const PointLayout& in, const float* patches, const PointLayout& out,
                float* products) const {
    simd::Product product = weights_.product(point);
    product.rows = tiles;
    product.a = patches + point * in.point();
    product.a_row = in.row();
    product.c = products + point * out.point();
    product.c_row = out.row();
    simd::kernels().multiply(product);
  }
  /// `outside` [channels] receives pixels beyond the images.
  void transform_products(int64_t begin, int64_t end, const PointLayout& layout, const float* products,
                          const float* bias, bool relu, float* outside) const {
    float* pixels[TiledImages::kMaxPixels];
    grid_.visit(begin, end, [&](const TilePlace& at, const TilePlace& ahead) {
      outputs_.prefetch(ahead);
      outputs_.writable(at, outside, pixels);
      transforms_.output(products, layout.point(), weights_.out(), bias, relu, pixels);
      products += layout.row();
    });
  }

 private:
  const PointWeights& weights_;
  const simd::WinogradTransforms& transforms_;
  TileGrid grid_;
  TiledImages patches_, outputs_;
};

/// Each thread takes blocks of tiles through all three steps within its own cache.
void correlate_by_tiles(const WinogradCorrelation& c, const PointWeights& weights, const float* bias, bool relu) {
  const int64_t block = std::min(kBlockTiles, c.tiles());
  const PointLayout in(weights.points(), block, weights.in()), out(weights.points(), block, weights.out());
  ThreadScratch patch_scratch(in.numel()), product_scratch(out.numel()), outside_scratch(weights.out());
  parallel_for(0, c.tiles(), 12, [&](int64_t begin, int64_t end) {
    float *const patches = patch_scratch.take(), *const products = product_scratch.take();
    float* const outside = outside_scratch.take();
    for (int64_t first = begin; first < end; first += block) {
      const int64_t last = std::min(first + block, end);
      c.transform_patches(first, last, in, patches);
      for (int64_t point = 0; point < weights.points(); ++point) {
        c.multiply(point, last - first, in, patches, out, products);
      }
      c.transform_products(first, last, out, products, bias, relu, outside);
    }
  });
}

/// All threads take one larger block through each step together, so that only one thread reads each transformed weight.
void correlate_by_points(const WinogradCorrelation& c, const PointWeights& weights, const float* bias, bool relu) {
  const int64_t block = std::min(kSharedTiles, c.tiles());
  const PointLayout in(weights.points(), block, weights.in()), out(weights.points(), block, weights.out());
  const Tensor patches = Tensor::empty({in.numel()}), products = Tensor::empty({out.numel()});
  float *const a = patches.data<float>(), *const b = products.data<float>();
  for (int64_t first = 0; first < c.tiles(); first += block) {
    const int64_t count = std::min(block, c.tiles() - first);
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      c.transform_patches(first + begin, first + end, in, a + begin * in.row());
    });
    parallel_for(0, weights.points(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t point = begin; point < end; ++point) c.multiply(point, count, in, a, out, b);
    });
    ThreadScratch outside(weights.out());
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      c.transform_products(first + begin, first + end, out, b + begin * out.row(), bias, relu, outside.take());
    });
  }
}

void correlate(const Tensor& in, const Tensor& w, bool backward, int64_t padding, const Tensor& bias, bool relu,
               Tensor& out) {
  const PointWeights weights(w, backward);
  const WinogradCorrelation correlation(in, weights, padding, out);
  Tensor shift;  // the bias, readable in whole vectors
  if (bias.defined()) {
    shift = Tensor::zeros({weights.out() + simd::kernels().width});
    std::copy_n(bias.data<float>(), weights.out(), shift.data<float>());
  }
  const float* readable = shift.defined() ? shift.data<float>() : nullptr;
  if (weights.numel() > kSharedFloats)
    correlate_by_points(correlation, weights, readable, relu);
  else
    correlate_by_tiles(correlation, weights, readable, relu);
}

}  // namespace

bool winograd_applies(const Shape& w, const kernels::ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  const int64_t taps = w[2];
  return (taps == 3 || taps == 5) && w[3] == taps && stride == 1 && dilation == 1 && groups == 1 &&
         padding.h == padding.w && padding.h < taps && std::min(w[0], w[1]) >= simd::kernels().width;
}

void winograd_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry,
                      bool relu, Tensor& y) {
  correlate(x, w, false, geometry.padding.h, bias, relu, y);
}

void winograd_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  correlate(dy, w, true, w.size(2) - 1 - geometry.padding.h, {}, false, dx);
}

}  // namespace tern::cpu
