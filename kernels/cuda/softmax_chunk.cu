#include "tern/kernels/softmax_chunk.h"

#include <cmath>

#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/cuda/rows.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using kernels::Bags;

/// The labels of the rows as the argument of a kernel. A plain value.
struct RowLabels {
  explicit RowLabels(const Bags& labels)
      : label(labels.indices.data<int64_t>()),
        offset(labels.offsets.data<int64_t>()),
        elements(labels.indices.numel()) {}

  __device__ int64_t begin(int64_t row) const { return std::max<int64_t>(offset[row], 0); }
  __device__ int64_t end(int64_t row) const { return std::min(offset[row + 1], elements); }
  __device__ float count(int64_t row) const { return float(std::max<int64_t>(end(row) - begin(row), 0)); }

  const int64_t *label, *offset;
  int64_t elements;
};

template <class T>
struct SoftmaxChunk {
  const T* z;
  RowLabels labels;
  int64_t first;
  float *maximum, *sum, *hits;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = z + row.begin();
    const float before = row.exists ? maximum[row.number] : 0;
    const float most = row.fold(before, Maximum{}, [&](int64_t c) { return float(in[c]); });
    const float shift = most == -INFINITY ? 0 : most;
    const float added = row.fold(0, Sum{}, [&](int64_t c) { return expf(float(in[c]) - shift); });
    if (!row.exists || threadIdx.x % Group != 0) return;
    const float total = sum[row.number];
    sum[row.number] = (most > before ? total * expf(before - most) : total) + added;
    maximum[row.number] = most;
    for (int64_t e = labels.begin(row.number); e < labels.end(row.number); ++e) {
      const int64_t c = labels.label[e] - first;
      if (c >= 0 && c < row.columns) hits[row.number] += float(in[c]);
    }
  }
};

template <class T>
struct SoftmaxChunkBackward {
  const float* logsumexp;
  RowLabels labels;
  int64_t first;
  float rows;
  const float* dloss;
  const T* z;
  T* dz;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    if (!row.exists) return;
    const float count = labels.count(row.number), scale = count > 0 ? *dloss / rows : 0, shift = logsumexp[row.number];
    const int64_t begin = labels.begin(row.number), end = labels.end(row.number);
    row.for_each([&](int64_t c) {
      float found = 0;
      for (int64_t e = begin; e < end; ++e) found += labels.label[e] == first + c ? 1.0f : 0.0f;
      const float target = count > 0 ? found / count : 0;
      dz[row.begin() + c] = static_cast<T>(scale * (expf(float(z[row.begin() + c]) - shift) - target));
    });
  }
};

/// Finds the best class after the last one, as often as there are places.
template <class T>
struct TopClasses {
  const T* z;
  int64_t first, count;
  float* values;
  int64_t* classes;
  template <int Group>
  __device__ void operator()(const Row<Group>& row) const {
    const T* in = z + row.begin();
    float last = INFINITY, last_column = -1;
    for (int64_t k = 0; k < count; ++k) {
      const auto comes_later = [&](int64_t c) {
        const float value = float(in[c]);
        return value < last || (value == last && float(c) > last_column);  // false for NaN
      };
      const float best =
          row.fold(-INFINITY, Maximum{}, [&](int64_t c) { return comes_later(c) ? float(in[c]) : -INFINITY; });
      const float column = -row.fold(-INFINITY, Maximum{}, [&](int64_t c) {
        return comes_later(c) && float(in[c]) == best ? -float(c) : -INFINITY;
      });
      last = best;
      last_column = column;
      if (row.exists && threadIdx.x % Group == 0 && best > -INFINITY) insert(row.number, best, first + int64_t(column));
    }
  }
  __device__ void insert(int64_t row, float value, int64_t place) const {
    float* best = values + row * count;
    int64_t* best_place = classes + row * count;
    if (!(value > best[count - 1])) return;
    int64_t k = count - 1;
    for (; k > 0 && value > best[k - 1]; --k) {
      best[k] = best[k - 1];
      best_place[k] = best_place[k - 1];
    }
    best[k] = value;
    best_place[k] = place;
  }
};

void softmax_chunk(const Tensor& z, const Bags& labels, int64_t first, Tensor& maximum, Tensor& sum, Tensor& hits) {
  visit_fast(z.dtype(), "softmax_chunk", [&]<class T>(T) {
    for_each_row("softmax_chunk", z.device(), z.size(0), z.size(1),
                 SoftmaxChunk<T>{.z = z.data<T>(),
                                 .labels = RowLabels(labels),
                                 .first = first,
                                 .maximum = maximum.data<float>(),
                                 .sum = sum.data<float>(),
                                 .hits = hits.data<float>()});
  });
}

__global__ void row_losses(const float* maximum, const float* sum, const float* hits, RowLabels labels, int64_t rows,
                           float* logsumexp, float* losses, float* mean_loss) {
  for (int64_t row = global_thread(); row < rows; row += global_threads()) {
    const float log_sum = maximum[row] + logf(sum[row]), count = labels.count(row);
    logsumexp[row] = log_sum;
    losses[row] = count > 0 ? log_sum - hits[row] / count : 0;
  }
  if (is_last_block(gridDim.x, 0)) total(losses, rows, 1 / static_cast<double>(rows), mean_loss);
}

void softmax_chunk_loss(const Tensor& maximum, const Tensor& sum, const Tensor& hits, const Bags& labels,
                        Tensor& logsumexp, Tensor& loss) {
  const int64_t rows = maximum.numel();
  if (rows == 0) return kernels::fill.on(Target::cuda)(loss, NAN);  // the mean of nothing
  const Tensor losses = Tensor::empty({rows}, {.device = maximum.device()});
  launch("softmax_chunk_loss", maximum.device(), grid_over(rows), row_losses, maximum.data<float>(), sum.data<float>(),
         hits.data<float>(), RowLabels(labels), rows, logsumexp.data<float>(), losses.data<float>(),
         loss.data<float>());
}

void softmax_chunk_backward(const Tensor& logsumexp, const Bags& labels, int64_t first, const Tensor& dloss,
                            const Tensor& z, Tensor& dz) {
  visit_fast(z.dtype(), "softmax_chunk_backward", [&]<class T>(T) {
    for_each_row("softmax_chunk_backward", z.device(), z.size(0), z.size(1),
                 SoftmaxChunkBackward<T>{.logsumexp = logsumexp.data<float>(),
                                         .labels = RowLabels(labels),
                                         .first = first,
                                         .rows = static_cast<float>(z.size(0)),
                                         .dloss = dloss.data<float>(),
                                         .z = z.data<T>(),
                                         .dz = dz.data<T>()});
  });
}

void top_classes(const Tensor& z, int64_t first, Tensor& values, Tensor& classes) {
  constexpr int64_t kMostColumns = int64_t{1} << 24;  // the integers that a float has
  check(z.size(1) <= kMostColumns, "top_classes: ", z.size(1), " classes in a chunk, expected at most ", kMostColumns);
  visit_fast(z.dtype(), "top_classes", [&]<class T>(T) {
    for_each_row("top_classes", z.device(), z.size(0), z.size(1),
                 TopClasses<T>{.z = z.data<T>(),
                               .first = first,
                               .count = values.size(1),
                               .values = values.data<float>(),
                               .classes = classes.data<int64_t>()});
  });
}

}  // namespace

void provide_softmax_chunk() {
  kernels::softmax_chunk.provide(Target::cuda, softmax_chunk);
  kernels::softmax_chunk_loss.provide(Target::cuda, softmax_chunk_loss);
  kernels::softmax_chunk_backward.provide(Target::cuda, softmax_chunk_backward);
  kernels::top_classes.provide(Target::cuda, top_classes);
}

}  // namespace tern::cuda
