#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/loop_nest.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// y = x in the dtype of y, f32 or bf16. x and y have the same shape and format.
void convert_elements(const Tensor& x, const Tensor& y) {
  visit_fast(x.dtype(), "convert", [&]<class From>(From) {
    visit_fast(y.dtype(), "convert", [&]<class To>(To) {
      const From* in = x.data<From>();
      To* out = y.data<To>();
      parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
        for (int64_t i = first; i < last; ++i) store(out + i, load(in + i));
      });
    });
  });
}

constexpr int64_t kTile = 16;

/// Writes matrices x [rows, columns] as y [columns, rows], tile by tile, so that both sides stay in cache.
template <class From, class To>
void transpose_matrices(const From* x, int64_t matrices, int64_t rows, int64_t columns, To* y) {
  const int64_t tiles = (rows + kTile - 1) / kTile;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, kTile * columns));
  parallel_vectorized(matrices * tiles, grain, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const From* from = x + i / tiles * rows * columns;
      To* to = y + i / tiles * rows * columns;
      const int64_t begin = i % tiles * kTile, height = std::min(kTile, rows - begin);
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t r = 0; r < height; ++r)
          store(to + column * rows + begin + r, load(from + (begin + r) * columns + column));
    }
  });
}

/// Copies the elements of an index space from x, the first array of `nest`, to y, the second.
template <class T>
void copy_nest(const kernels::LoopNest<2>& nest, const T* x, T* y) {
  const int64_t x_step = nest.inner_step(0), y_step = nest.inner_step(1), inner = nest.inner;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner));
  parallel_for(0, nest.outer, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto at = nest.offsets(i);
      if (x_step == 1 && y_step == 1)
        std::copy_n(x + at[0], inner, y + at[1]);
      else
        for (int64_t j = 0; j < inner; ++j) y[at[1] + j * y_step] = x[at[0] + j * x_step];
    }
  });
}

/// Copies elements of shape `shape` from x to y. Each tensor is accessed with its strides, starting at its origin.
void copy_block(const Tensor& x, const kernels::Strides& x_strides, int64_t x_origin, const Tensor& y,
                const kernels::Strides& y_strides, int64_t y_origin, const Shape& shape) {
  if (shape.numel() == 0) return;
  const kernels::LoopNest<2> nest(shape, kernels::storage_order(y), {x_strides, y_strides});
  visit_dtype(x.dtype(), [&]<class T>(T) { copy_nest(nest, x.data<T>() + x_origin, y.data<T>() + y_origin); });
}

int64_t block_origin(const kernels::Strides& strides, const kernels::Offsets& offsets, const Shape& shape) {
  int64_t origin = 0;
  for (int d = 0; d < shape.rank(); ++d) origin += offsets[d] * strides[d];
  return origin;
}

bool is_fast(const Tensor& tensor) { return tensor.dtype() == DType::f32 || tensor.dtype() == DType::bf16; }

/// Strides of a tensor's own dimensions; 0 for a dimension of extent 1.
kernels::Strides own_strides(const Tensor& tensor) { return kernels::strides_in(tensor, tensor.shape()); }

void convert(const Tensor& x, Tensor& y) {
  if (!is_fast(x) || !is_fast(y) || x.numel() == 0) return y.copy_from(x);
  if (x.format() == y.format()) return convert_elements(x, y);
  const bool to_last = y.format() == MemoryFormat::channels_last;
  const int64_t channels = x.size(1), pixels = x.size(2) * x.size(3);
  visit_fast(x.dtype(), "convert", [&]<class From>(From) {
    visit_fast(y.dtype(), "convert", [&]<class To>(To) {
      transpose_matrices(x.data<From>(), x.size(0), to_last ? channels : pixels, to_last ? pixels : channels,
                         y.data<To>());
    });
  });
}

void convert_all(std::span<const kernels::Conversion> conversions) {
  for (auto [x, y] : conversions) convert(x, y);
}

void permute(const Tensor& x, const kernels::Order& order, Tensor& y) {
  if (kernels::exchanges_last_two(order, x.rank()) && is_fast(x) && x.numel() != 0) {
    visit_fast(x.dtype(), "permute", [&]<class T>(T) {
      transpose_matrices(x.data<T>(), x.numel() / (x.size(-2) * x.size(-1)), x.size(-2), x.size(-1), y.data<T>());
    });
    return;
  }
  copy_block(x, kernels::permuted_strides(x, order), 0, y, own_strides(y), 0, y.shape());
}

void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  const kernels::Strides strides = own_strides(x);
  copy_block(x, strides, block_origin(strides, offsets, y.shape()), y, own_strides(y), 0, y.shape());
}

void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  const kernels::Strides strides = own_strides(y);
  copy_block(x, own_strides(x), 0, y, strides, block_origin(strides, offsets, x.shape()), x.shape());
}

void reflection_pad(const Tensor& x, const kernels::Border& border, Tensor& y) {
  const int64_t h = x.size(-2), w = x.size(-1), rows = y.size(-2), columns = y.size(-1);
  const int64_t top = border.top, left = border.left, right = border.right;
  visit_fast(x.dtype(), "reflection_pad", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    const int64_t grain = std::max<int64_t>(1, kGrain / columns);
    parallel_for(0, y.numel() / columns, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const T* from = in + (i / rows * h + mirrored(i % rows - top, h)) * w;
        T* to = out + i * columns;
        for (int64_t j = 0; j < left; ++j) to[j] = from[left - j];
        std::copy_n(from, w, to + left);
        for (int64_t j = 0; j < right; ++j) to[left + w + j] = from[w - 2 - j];
      }
    });
  });
}

/// Each row of dx sums the rows of dy that show it: one, and one more for each edge that it is near to.
void reflection_pad_backward(const Tensor& dy, const kernels::Border& border, Tensor& dx) {
  const int64_t h = dx.size(-2), w = dx.size(-1), rows = dy.size(-2), columns = dy.size(-1);
  const int64_t top = border.top, bottom = border.bottom, left = border.left, right = border.right;
  visit_fast(dy.dtype(), "reflection_pad_backward", [&]<class T>(T) {
    const T* in = dy.data<T>();
    T* out = dx.data<T>();
    const int64_t grain = std::max<int64_t>(1, kGrain / columns);
    parallel_for(0, dx.numel() / w, grain, [=](int64_t first, int64_t last) {
      std::vector<float> sums(static_cast<size_t>(w));
      for (int64_t i = first; i < last; ++i) {
        std::ranges::fill(sums, 0.0f);
        const int64_t row = i % h;
        const auto add = [&](int64_t padded_row) {
          const T* from = in + (i / h * rows + padded_row) * columns;
          for (int64_t j = 0; j < w; ++j) sums[static_cast<size_t>(j)] += load(from + left + j);
          for (int64_t j = 0; j < left; ++j) sums[static_cast<size_t>(left - j)] += load(from + j);
          for (int64_t j = 0; j < right; ++j) sums[static_cast<size_t>(w - 2 - j)] += load(from + left + w + j);
        };
        add(top + row);
        if (row >= 1 && row <= top) add(top - row);
        if (row <= h - 2 && row >= h - 1 - bottom) add(top + 2 * (h - 1) - row);
        for (int64_t j = 0; j < w; ++j) store(out + i * w + j, sums[static_cast<size_t>(j)]);
      }
    });
  });
}

void fill(Tensor& x, double value) {
  if (!is_fast(x)) return x.fill(value);
  visit_fast(x.dtype(), "fill", [&]<class T>(T) {
    T* out = x.data<T>();
    const auto number = static_cast<float>(value);
    parallel_vectorized(x.numel(), kGrain, [=](int64_t first, int64_t last) {
#pragma omp simd
      for (int64_t i = first; i < last; ++i) store(out + i, number);
    });
  });
}

}  // namespace

void provide_layout() {
  kernels::convert.provide(Target::cpu, convert);
  kernels::convert_all.provide(Target::cpu, convert_all);
  kernels::permute.provide(Target::cpu, permute);
  kernels::extract.provide(Target::cpu, extract);
  kernels::insert.provide(Target::cpu, insert);
  kernels::reflection_pad.provide(Target::cpu, reflection_pad);
  kernels::reflection_pad_backward.provide(Target::cpu, reflection_pad_backward);
  kernels::fill.provide(Target::cpu, fill);
}

}  // namespace tern::cpu
