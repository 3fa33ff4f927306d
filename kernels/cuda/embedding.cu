#include "tern/kernels/embedding.h"

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using kernels::Bags;

/// `Bags` as the argument of a kernel. A plain value.
struct Elements {
  explicit Elements(const Bags& bags)
      : index(bags.indices.data<int64_t>()),
        offset(bags.offsets.defined() ? bags.offsets.data<int64_t>() : nullptr),
        value(bags.values.defined() ? bags.values.data<float>() : nullptr),
        count(bags.indices.numel()) {}

  __device__ int64_t begin(int64_t n) const { return offset != nullptr ? offset[n] : n; }
  __device__ float factor(int64_t e) const { return value != nullptr ? value[e] : 1.0f; }

  const int64_t *index, *offset;
  const float* value;
  int64_t count;
};

/// One thread for each element of y.
template <class T>
__global__ void sum_bags(Elements elements, const T* weight, int64_t rows, int64_t columns, int64_t features, T* y) {
  for (int64_t i = global_thread(); i < rows * features; i += global_threads()) {
    const int64_t n = i / features, f = i - n * features;
    const int64_t first = std::max<int64_t>(elements.begin(n), 0),
                  last = std::min(elements.begin(n + 1), elements.count);
    float sum = 0;
#pragma unroll 4
    for (int64_t e = first; e < last; ++e) {
      const int64_t column = elements.index[e];
      const bool inside = column >= 0 && column < columns;
      sum += inside ? elements.factor(e) * float(weight[column * features + f]) : NAN;
    }
    y[i] = static_cast<T>(sum);
  }
}

/// row[e] = the row of element e, the last one that begins at or before it.
__global__ void find_rows(Elements elements, int64_t rows, int64_t* row) {
  for (int64_t e = global_thread(); e < elements.count; e += global_threads()) {
    int64_t below = 0, above = rows;  // row `below` begins at or before e, row `above` after it
    while (above - below > 1) {
      const int64_t middle = (below + above) / 2;
      (elements.begin(middle) <= e ? below : above) = middle;
    }
    row[e] = below;
  }
}

/// The features that a warp sums: those of a strip, several for each lane.
constexpr int kPerLane = 4, kStrip = kWarp * kPerLane;

/// Each warp owns the columns c with c % owners equal to its number, in one strip of features. It reads all indices, 32
/// at once, and adds the elements of its own columns in their order. So no two threads write to the same sum, and the
/// order of a sum does not depend on the device. `owners` is a power of two.
template <class T>
__global__ void sum_columns_of_bags(Elements elements, const int64_t* row, const T* dy, int64_t columns,
                                    int64_t features, int64_t owners, float* dw) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t own = global_thread() / kWarp, first = int64_t{blockIdx.y} * kStrip + lane;
  for (int64_t begin = 0; begin < elements.count; begin += kWarp) {
    const int64_t column = begin + lane < elements.count ? elements.index[begin + lane] : -1;
    const bool mine = column >= 0 && column < columns && (column & (owners - 1)) == own;
    unsigned hits = __ballot_sync(~0u, mine);
    for (int hit = 0; hits != 0; ++hit, hits >>= 1) {
      if ((hits & 1) == 0) continue;
      const int64_t target = __shfl_sync(~0u, column, hit), e = begin + hit;
      const float factor = elements.factor(e);
      const T* from = dy + row[e] * features;
      float* to = dw + target * features;
#pragma unroll
      for (int k = 0; k < kPerLane; ++k)
        if (const int64_t f = first + k * kWarp; f < features) to[f] += factor * float(from[f]);
    }
  }
}

void embedding_bag(const Tensor& weight, const Bags& bags, Tensor& y) {
  if (y.numel() == 0) return;
  visit_fast(weight.dtype(), "embedding_bag", [&]<class T>(T) {
    launch("embedding_bag", weight.device(), grid_over(y.numel()), sum_bags<T>, Elements(bags),
           static_cast<const T*>(weight.data<T>()), y.size(0), weight.size(0), y.size(1), y.data<T>());
  });
}

void embedding_bag_backward(const Tensor& dy, const Bags& bags, Tensor& dw) {
  constexpr const char* kOperation = "embedding_bag_backward";
  constexpr int64_t kMostOwners = 4096, kWarps = kThreads / kWarp;
  if (dw.numel() == 0) return;
  const Device device = dw.device();
  const int64_t columns = dw.size(0), features = dw.size(1), elements = bags.indices.numel();
  Tensor sums = dw.dtype() == DType::f32 ? dw : Tensor::empty(dw.shape(), {.device = device});
  kernels::fill.on(Target::cuda)(sums, 0);
  if (elements > 0 && dy.size(0) > 0) {
    const Tensor row = Tensor::empty({elements}, {.dtype = DType::i64, .device = device});
    launch(kOperation, device, grid_over(elements), find_rows, Elements(bags), dy.size(0), row.data<int64_t>());
    int64_t owners = kWarps;
    while (owners < std::min(columns, kMostOwners)) owners *= 2;
    const Grid grid{.blocks = dim3(static_cast<unsigned>(owners / kWarps),
                                   static_cast<unsigned>((features + kStrip - 1) / kStrip))};
    visit_fast(dy.dtype(), kOperation, [&]<class T>(T) {
      launch(kOperation, device, grid, sum_columns_of_bags<T>, Elements(bags),
             static_cast<const int64_t*>(row.data<int64_t>()), static_cast<const T*>(dy.data<T>()), columns, features,
             owners, sums.data<float>());
    });
  }
  if (dw.dtype() != DType::f32) kernels::convert.on(Target::cuda)(sums, dw);
}

template <class T>
__global__ void scatter_rows(const T* values, const int64_t* rows, int64_t count, int64_t columns, int64_t features,
                             T* w) {
  for (int64_t i = global_thread(); i < count * features; i += global_threads()) {
    const int64_t n = i / features, row = rows[n];
    if (row >= 0 && row < columns) w[row * features + (i - n * features)] = values[i];
  }
}

void put_rows(const Tensor& values, const Tensor& rows, Tensor& w) {
  if (values.numel() == 0) return;
  visit_fast(w.dtype(), "put_rows", [&]<class T>(T) {
    launch("put_rows", w.device(), grid_over(values.numel()), scatter_rows<T>, static_cast<const T*>(values.data<T>()),
           static_cast<const int64_t*>(rows.data<int64_t>()), rows.numel(), w.size(0), w.size(1), w.data<T>());
  });
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::cuda, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::cuda, embedding_bag_backward);
  kernels::put_rows.provide(Target::cuda, put_rows);
}

}  // namespace tern::cuda
