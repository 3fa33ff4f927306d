#include "tern/kernels/embedding.h"

#include <algorithm>
#include <utility>

#include "tern/kernels/cpu/map.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::Bags;

const float* values_of(const Bags& bags) { return bags.values.defined() ? bags.values.data<float>() : nullptr; }

/// Where the elements of a row begin.
struct Offsets {
  explicit Offsets(const Bags& bags) : offset(bags.offsets.defined() ? bags.offsets.data<int64_t>() : nullptr) {}
  int64_t operator[](int64_t n) const { return offset != nullptr ? offset[n] : n; }

  const int64_t* offset;
};

/// Features that are summed at once, in registers.
constexpr int64_t kFeaturesAtOnce = 64;

/// to[f] = Σ factors[k] · from[rows[k]·features + f] over k in [first, last), for the `width` features from `begin` on.
/// Null factors are all 1.
template <class T>
void sum_scaled_rows(const T* from, const int64_t* rows, const float* factors, int64_t first, int64_t last,
                     int64_t features, int64_t begin, T* to) {
  const int64_t width = std::min(kFeaturesAtOnce, features - begin);
  float total[kFeaturesAtOnce] = {};
  for (int64_t k = first; k < last; ++k) {
    const T* row = from + rows[k] * features + begin;
    const float factor = factors != nullptr ? factors[k] : 1.0f;
#pragma omp simd
    for (int64_t f = 0; f < width; ++f) total[f] += factor * load(row + f);
  }
#pragma omp simd
  for (int64_t f = 0; f < width; ++f) store(to + begin + f, total[f]);
}

void embedding_bag(const Tensor& weight, const Bags& bags, Tensor& y) {
  kernels::check_bag_elements(kernels::embedding_name(bags), bags, weight.size(0));
  const int64_t rows = y.size(0), features = y.size(1), strips = (features + kFeaturesAtOnce - 1) / kFeaturesAtOnce;
  const auto* index = bags.indices.data<int64_t>();
  const Offsets offset(bags);
  const float* factors = values_of(bags);
  const int64_t per_row = bags.indices.numel() / std::max<int64_t>(1, rows) + 1;
  const int64_t grain =
      std::max<int64_t>(1, kGrain / (per_row * std::min(kFeaturesAtOnce, std::max<int64_t>(1, features))));
  visit_fast(weight.dtype(), "embedding_bag", [&]<class T>(T) {
    const T* from = weight.data<T>();
    T* to = y.data<T>();
    parallel_vectorized(rows * strips, grain, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t n = i / strips, begin = i % strips * kFeaturesAtOnce;
        sum_scaled_rows(from, index, factors, offset[n], offset[n + 1], features, begin, to + n * features);
      }
    });
  });
}

/// The matrix by columns: of each column the rows and values of its elements, in the order of `Bags`.
struct Columns {
  Tensor starts;  ///< i64 [columns + 1]: the elements of column c are those in [starts[c], starts[c + 1])
  Tensor rows;    ///< i64 [elements]
  Tensor values;  ///< as in `Bags`
};

Columns by_columns(const Bags& bags, int64_t columns) {
  const int64_t elements = bags.indices.numel();
  const auto* index = bags.indices.data<int64_t>();
  const Offsets offset(bags);
  const float* value = values_of(bags);
  Columns sorted{Tensor::zeros({columns + 1}, {.dtype = DType::i64}), Tensor::empty({elements}, {.dtype = DType::i64}),
                 value != nullptr ? Tensor::empty({elements}) : Tensor()};
  auto *start = sorted.starts.data<int64_t>(), *row = sorted.rows.data<int64_t>();
  float* factor = value != nullptr ? sorted.values.data<float>() : nullptr;
  for (int64_t e = 0; e < elements; ++e) ++start[index[e]];
  for (int64_t c = 0, before = 0; c <= columns; ++c) before += std::exchange(start[c], before);
  for (int64_t n = 0; n < bags.rows(); ++n)
    for (int64_t e = offset[n]; e < offset[n + 1]; ++e) {
      const int64_t place = start[index[e]]++;
      row[place] = n;
      if (factor != nullptr) factor[place] = value[e];
    }
  // Every start is now that of the next column.
  std::move_backward(start, start + columns, start + columns + 1);
  start[0] = 0;
  return sorted;
}

// A thread takes whole columns, with as many columns and elements together as any other thread.
void embedding_bag_backward(const Tensor& dy, const Bags& bags, Tensor& dw) {
  const int64_t columns = dw.size(0), features = dw.size(1);
  kernels::check_bag_elements(kernels::embedding_name(bags), bags, columns);
  const Columns sorted = by_columns(bags, columns);
  const auto *start = sorted.starts.data<int64_t>(), *rows = sorted.rows.data<int64_t>();
  const float* factors = sorted.values.defined() ? sorted.values.data<float>() : nullptr;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, features));
  visit_fast(dy.dtype(), "embedding_bag_backward", [&]<class T>(T) {
    const T* from = dy.data<T>();
    T* to = dw.data<T>();
    parallel_vectorized(columns + bags.indices.numel(), grain, [=](int64_t first, int64_t last) {
      // Column c, whose elements begin at start[c], begins at this place of the work.
      const auto place = [=](const int64_t& begin) { return begin + (&begin - start); };
      int64_t c = std::ranges::lower_bound(start, start + columns + 1, first, {}, place) - start;
      for (; c < columns && place(start[c]) < last; ++c) {
        T* sums = to + c * features;
        if (start[c] == start[c + 1])  // most columns, if there are many
          std::fill_n(sums, features, T{});
        else
          for (int64_t begin = 0; begin < features; begin += kFeaturesAtOnce)
            sum_scaled_rows(from, rows, factors, start[c], start[c + 1], features, begin, sums);
      }
    });
  });
}

void put_rows(const Tensor& values, const Tensor& rows, Tensor& w) {
  kernels::check_bag_elements("put_rows", {.indices = rows, .offsets = {}, .values = {}}, w.size(0));
  const auto* row = rows.data<int64_t>();
  visit_fast(w.dtype(), "put_rows", [&]<class T>(T) {
    const int64_t features = w.size(1);
    const T* from = values.data<T>();
    T* to = w.data<T>();
    parallel_vectorized(rows.numel(), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, features)),
                        [=](int64_t first, int64_t last) {
                          for (int64_t i = first; i < last; ++i)
                            std::copy_n(from + i * features, features, to + row[i] * features);
                        });
  });
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::cpu, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::cpu, embedding_bag_backward);
  kernels::put_rows.provide(Target::cpu, put_rows);
}

}  // namespace tern::cpu
