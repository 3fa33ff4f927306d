#include "tern/kernels/block_dct.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/largest.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

constexpr int64_t kLine = kMostDctSide;  ///< floats from row to row of a buffer
constexpr int64_t kCacheLine = 64 / sizeof(float);
constexpr int64_t kLeast = 4096;  ///< elements of a thread
using Buffer = float[kLine * kLine];

int64_t rounded_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// A DCT of n numbers is folded: its even coefficients are a product with the sums x[j] + x[n-1-j], its odd ones with
/// the differences. That halves the multiplications. The number in the middle is a sum.
struct Fold {
  explicit Fold(const Tensor& matrix) : c(matrix.data<float>()), n(matrix.size(0)), even((n + 1) / 2), odd(n / 2) {}
  /// Number of the even (0) or odd (1) coefficients, and of the sums or differences.
  int64_t count(int64_t parity) const { return parity == 0 ? even : odd; }

  const float* c;
  int64_t n, even, odd;
};

/// Some blocks beside each other, in a tensor whose rows are `stride` elements apart.
struct Strip {
  int64_t at;  ///< its first element
  int64_t blocks;
  int64_t next;  ///< how far the strip behind it begins, to prefetch it
};

/// c = a · b, for a b without panels.
void multiply(simd::Product product) {
  if (product.rows == 0) return;
  product.b_panel = 2 * simd::kernels().width;
  simd::kernels().multiply(product);
}

/// Transforms blocks of one size. A strip of blocks stays in the first cache.
class Blocks {
 public:
  Blocks(const Tensor& of_columns, const Tensor& of_rows, int64_t stride, const BlockDctOptions& options)
      : down_(of_columns), across_(of_rows), stride_(stride), options_(options), tail_(simd::kernels().tail) {
    half_ = rounded_up(across_.even, tail_);
    for (int64_t parity = 0; parity < 2; ++parity) {
      down_halves_[parity].resize(static_cast<size_t>(down_.count(parity) * down_.count(parity)));
      across_halves_[parity].resize(static_cast<size_t>(across_.count(parity) * half_));
      for (int64_t k = parity; k < down_.n; k += 2)
        std::copy_n(down_.c + k * down_.n, down_.count(parity),
                    down_halves_[parity].data() + k / 2 * down_.count(parity));
      for (int64_t k = parity; k < across_.n; k += 2)
        for (int64_t j = 0; j < across_.count(parity); ++j)
          across_halves_[parity][static_cast<size_t>(j * half_ + k / 2)] = scaled(across_.c[k * across_.n + j]);
    }
    across_rows_.resize(static_cast<size_t>(across_.n * kLine));
    for (int64_t k = 0; k < across_.n; ++k)
      for (int64_t j = 0; j < across_.n; ++j)
        across_rows_[static_cast<size_t>(k * kLine + j)] = scaled(across_.c[k * across_.n + j]);
  }

  /// The most blocks of a strip. Then every buffer has room for it.
  int64_t most() const { return std::max<int64_t>(1, kLine / (2 * half_)); }

  void transform(const Strip& strip, const float* x, float* y) const {
    if (options_.inverse)
      inverse(strip, x + strip.at, y + strip.at);
    else
      forward(strip, x + strip.at, y + strip.at);
  }

 private:
  float scaled(float cosine) const { return static_cast<float>(options_.scale) * cosine; }

  void forward(const Strip& strip, const float* x, float* y) const {
    alignas(64) Buffer folded, columns;
    const int64_t width = strip.blocks * across_.n, padded = rounded_up(width, tail_);
    fold_columns(strip, x, y, width, padded, folded);
    for (int64_t parity = 0; parity < 2; ++parity)
      multiply({.rows = down_.count(parity),
                .columns = padded,
                .depth = down_.count(parity),
                .a = down_halves_[parity].data(),
                .a_row = down_.count(parity),
                .b = folded + parity * down_.even * kLine,
                .b_row = kLine,
                .c = columns + parity * kLine,
                .c_row = 2 * kLine});
    fold_rows(strip.blocks, columns, folded);
    for (int64_t parity = 0; parity < 2; ++parity)
      multiply({.rows = down_.n * strip.blocks,
                .columns = rounded_up(across_.count(parity), tail_),
                .depth = across_.count(parity),
                .a = folded + parity * across_.even,
                .a_row = across_.n,
                .b = across_halves_[parity].data(),
                .b_row = half_,
                .c = columns + parity * half_,
                .c_row = 2 * half_});
    interleave(strip.blocks, columns, y);
  }

  /// to = the sums of the rows of x, then the differences. Prefetches the next strip.
  void fold_columns(const Strip& strip, const float* x, const float* y, int64_t width, int64_t padded,
                    float* to) const {
    const int64_t even = down_.even, odd = down_.odd, n = down_.n, stride = stride_, next = strip.next;
    vectorized([=] {
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < width; j += kCacheLine) {
          __builtin_prefetch(x + i * stride + next + j);
          __builtin_prefetch(y + i * stride + next + j, 1);
        }
      for (int64_t i = 0; i < odd; ++i) {
        const float *const first = x + i * stride, *const last = x + (n - 1 - i) * stride;
        float *const sum = to + i * kLine, *const difference = to + (even + i) * kLine;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          sum[j] = first[j] + last[j];
          difference[j] = first[j] - last[j];
        }
      }
      if (even > odd) std::copy_n(x + odd * stride, width, to + odd * kLine);
      if (padded > width)
        for (int64_t i = 0; i < n; ++i) std::fill(to + i * kLine + width, to + i * kLine + padded, 0.0f);
    });
  }

  /// Each run of each row of `from` becomes a row of `to`: its sums, then its differences.
  void fold_rows(int64_t blocks, const float* from, float* to) const {
    const int64_t even = across_.even, odd = across_.odd, n = across_.n, rows = down_.n;
    vectorized([=] {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t block = 0; block < blocks; ++block) {
          const float* const run = from + i * kLine + block * n;
          float* const sums = to + (i * blocks + block) * n;
#pragma omp simd
          for (int64_t j = 0; j < odd; ++j) {
            sums[j] = run[j] + run[n - 1 - j];
            sums[even + j] = run[j] - run[n - 1 - j];
          }
          if (even > odd) sums[odd] = run[odd];
        }
    });
  }

  /// Even and odd coefficients take turns.
  void interleave(int64_t blocks, const float* from, float* y) const {
    const int64_t even = across_.even, odd = across_.odd, n = across_.n, rows = down_.n, half = half_, stride = stride_;
    vectorized([=] {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t block = 0; block < blocks; ++block) {
          const float *const evens = from + (i * blocks + block) * 2 * half, *const odds = evens + half;
          float* const to = y + i * stride + block * n;
#pragma omp simd
          for (int64_t k = 0; k < odd; ++k) {
            to[2 * k] = evens[k];
            to[2 * k + 1] = odds[k];
          }
          if (even > odd) to[n - 1] = evens[odd];
        }
    });
  }

  /// The rows of a strip that have coefficients other than 0, even or odd ones, already transformed.
  struct KeptRows {
    alignas(64) float rows[kLine / 2 * kLine];
    alignas(64) float cosines[kLine / 2 * kLine];  ///< C's first half of each of these rows
    int64_t count = 0;
  };

  // Most coefficients of a mean are 0. The rows are transformed coefficient by coefficient, and rows of zeros are left
  // out of the product that transforms the columns.
  void inverse(const Strip& strip, const float* x, float* y) const {
    const int64_t width = strip.blocks * across_.n, padded = rounded_up(width, tail_);
    uint32_t masks[kLine * kWords];
    find_coefficients(strip, x, y, width, masks);
    KeptRows kept[2];
    for (int64_t k = 0; k < down_.n; ++k) {
      const uint64_t mask = masks[k * kWords] | uint64_t{masks[k * kWords + 1]} << 32;
      if (mask == 0) continue;
      KeptRows& of_parity = kept[k % 2];
      const int64_t number = of_parity.count++;
      transform_row(x + k * stride_, mask, of_parity.rows + number * kLine);
      std::copy_n(down_.c + k * down_.n, down_.count(k % 2), of_parity.cosines + number * kLine);
    }
    alignas(64) Buffer halves;  // the sums' rows, then the differences' rows
    for (int64_t parity = 0; parity < 2; ++parity)
      multiply({.rows = down_.count(parity),
                .columns = padded,
                .depth = kept[parity].count,
                .a = kept[parity].cosines,
                .a_row = 1,
                .a_depth = kLine,
                .b = kept[parity].rows,
                .b_row = kLine,
                .c = halves + parity * down_.even * kLine,
                .c_row = kLine});
    unfold_columns(halves, width, y);
  }

  static constexpr int64_t kWords = kLine / simd::kGroup;

  /// masks[i, kWords] = a bit for each element of row i: it is set unless the element is 0. Prefetches the next strip.
  void find_coefficients(const Strip& strip, const float* x, const float* y, int64_t width, uint32_t* masks) const {
    alignas(64) uint32_t magnitudes[kLine * kLine];
    const int64_t n = down_.n, stride = stride_, next = strip.next;
    uint32_t* const to = magnitudes;
    vectorized([=] {
      for (int64_t i = 0; i < n; ++i) {
        const float* const row = x + i * stride;
        for (int64_t j = 0; j < width; j += kCacheLine) {
          __builtin_prefetch(row + next + j);
          __builtin_prefetch(y + i * stride + next + j, 1);
        }
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[i * kLine + j] = magnitude_bits(row[j]);
        std::fill(to + i * kLine + width, to + (i + 1) * kLine, 0u);
      }
    });
    simd::kernels().codec->at_least(magnitudes, n * kLine, 1, masks);
  }

  /// to = the sum of D's rows, each times its coefficient, for all blocks of the strip.
  void transform_row(const float* x, uint64_t mask, float* to) const {
    const int64_t n = across_.n;
    const float* const rows = across_rows_.data();
    vectorized([=] {
      std::fill_n(to, kLine, 0.0f);
      for (uint64_t left = mask; left != 0; left &= left - 1) {
        const int64_t place = std::countr_zero(left), first = place / n * n;
        const float coefficient = x[place];
        const float* const row = rows + (place - first) * kLine;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) to[first + j] += coefficient * row[j];
      }
    });
  }

  void unfold_columns(const float* halves, int64_t width, float* y) const {
    const int64_t even = down_.even, odd = down_.odd, n = down_.n, stride = stride_;
    const bool sign = options_.sign;
    const auto finished = [=](float value) {
      return sign ? (value > 0 ? 1.0f : 0.0f) - (value < 0 ? 1.0f : 0.0f) : value;
    };
    vectorized([=] {
      for (int64_t i = 0; i < odd; ++i) {
        const float *const sum = halves + i * kLine, *const difference = halves + (even + i) * kLine;
        float *const first = y + i * stride, *const last = y + (n - 1 - i) * stride;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          first[j] = finished(sum[j] + difference[j]);
          last[j] = finished(sum[j] - difference[j]);
        }
      }
      if (even == odd) return;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) y[odd * stride + j] = finished(halves[odd * kLine + j]);
    });
  }

  Fold down_, across_;  // of the columns, and of the rows
  int64_t stride_;
  BlockDctOptions options_;
  int64_t tail_;
  int64_t half_;                         // floats of a half of a row's coefficients
  std::vector<float> down_halves_[2];    // C's even and odd rows, folded
  std::vector<float> across_halves_[2];  // the same of D, scaled: coefficient k / 2 of all rows is in column k / 2
  std::vector<float> across_rows_;       // D, scaled, with kLine floats a row
};

void block_dct(const Tensor& x, const BlockCosines& cosines, const BlockDctOptions& options, Tensor& y) {
  check_block_dct(x, cosines, options, y);
  check(x.dtype() == DType::f32, "block_dct: elements are ", x.dtype(), ", expected f32 or f64");
  if (x.numel() == 0) return;
  const BlockGrid grid(x.shape(), options.side, options.run);
  const Blocks blocks(cosines.of_columns, cosines.of_rows, grid.columns, options);
  const int64_t across = grid.columns / grid.tile_columns, strips = (across + blocks.most() - 1) / blocks.most();
  const float* const from = x.data<float>();
  float* const to = y.data<float>();
  const int64_t elements = grid.tile_rows * blocks.most() * grid.tile_columns;  // of a strip
  parallel_for(0, grid.rows / grid.tile_rows * strips, rounded_up(kLeast, elements) / elements,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % strips * blocks.most();
                   const int64_t at = i / strips * grid.tile_rows * grid.columns + first * grid.tile_columns;
                   const bool has_next = first + blocks.most() < across;
                   blocks.transform({.at = at,
                                     .blocks = std::min(blocks.most(), across - first),
                                     .next = has_next ? blocks.most() * grid.tile_columns : 0},
                                    from, to);
                 }
               });
  if (const int64_t rest = rest_of(grid); rest > 0)
    Blocks(cosines.of_columns, cosines.of_rest, grid.columns, options)
        .transform({.at = x.numel() - rest, .blocks = 1, .next = 0}, from, to);
}

}  // namespace

void provide_block_dct() { kernels::block_dct.provide(Target::cpu, block_dct); }

}  // namespace tern::cpu
