#include "tern/kernels/attention.h"

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

constexpr int kPerLane = 8, kMostDepth = kPerLane * kWarp;

/// The extents of an attention. A plain value.
struct Extents {
  int64_t batch, queries, depth, keys, width;
  float scale;
  bool causal;

  /// The number of keys that query i sees.
  __device__ int64_t seen(int64_t i) const { return causal && i < keys ? i + 1 : keys; }
};

template <class T>
struct Pointers {
  const T *q, *k, *v;
};

/// The elements of a vector that one lane of a warp holds: those with index lane, lane + 32, ...
struct Share {
  float values[kPerLane] = {};

  template <class T>
  __device__ static Share load(const T* from, int64_t count) {
    Share share;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if (lane + i * kWarp < count) share.values[i] = float(from[lane + i * kWarp]);
    return share;
  }
  template <class T>
  __device__ void store(T* to, int64_t count, float factor) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if (lane + i * kWarp < count) to[lane + i * kWarp] = static_cast<T>(factor * values[i]);
  }
  __device__ float dot(const Share& other) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sum += values[i] * other.values[i];
    return fold_group<kWarp>(sum, Sum{});
  }
  __device__ void add(float factor, const Share& other) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) values[i] += factor * other.values[i];
  }
  __device__ void multiply(float factor) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) values[i] *= factor;
  }
};

__device__ int64_t global_warp() { return global_thread() / kWarp; }

/// One warp for each query. The largest score so far and the sum follow the keys (Milakov and Gimelshein, 2018).
template <class T>
__global__ void attention_kernel(Pointers<T> in, Extents of, T* y, float* log_sums) {
  const int64_t row = global_warp();
  if (row >= of.batch * of.queries) return;
  const int64_t b = row / of.queries, i = row - b * of.queries, keys = of.seen(i);
  const Share query = Share::load(in.q + row * of.depth, of.depth);
  Share sums;
  float largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t column = b * of.keys + j;
    const float score = of.scale * query.dot(Share::load(in.k + column * of.depth, of.depth));
    const float most = score > largest ? score : largest;
    const float shift = most == -INFINITY ? 0 : most;  // so that -∞ adds 0, also if there is no other score yet
    const float before = expf(largest - shift), share = expf(score - shift);
    sums.multiply(before);
    sums.add(share, Share::load(in.v + column * of.width, of.width));
    total = total * before + share;
    largest = most;
  }
  sums.store(y + row * of.width, of.width, 1 / total);
  if (threadIdx.x % kWarp == 0) log_sums[row] = largest + logf(total);
}

/// What the backward reads beside q, k and v.
template <class T>
struct Results {
  const T *dy, *y;
  const float* log_sums;
};

/// One warp for each query: dq.
template <class T>
__global__ void query_gradients(Pointers<T> in, Results<T> out, Extents of, T* dq) {
  const int64_t row = global_warp();
  if (row >= of.batch * of.queries) return;
  const int64_t b = row / of.queries, i = row - b * of.queries, keys = of.seen(i);
  const Share query = Share::load(in.q + row * of.depth, of.depth),
              d_out = Share::load(out.dy + row * of.width, of.width);
  const float mean = d_out.dot(Share::load(out.y + row * of.width, of.width)), log_sum = out.log_sums[row];
  Share sums;
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t column = b * of.keys + j;
    const Share key = Share::load(in.k + column * of.depth, of.depth);
    const float share = expf(of.scale * query.dot(key) - log_sum);
    sums.add(share * (d_out.dot(Share::load(in.v + column * of.width, of.width)) - mean), key);
  }
  sums.store(dq + row * of.depth, of.depth, of.scale);
}

/// One warp for each key: dk and dv.
template <class T>
__global__ void key_gradients(Pointers<T> in, Results<T> out, Extents of, T* dk, T* dv) {
  const int64_t column = global_warp();
  if (column >= of.batch * of.keys) return;
  const int64_t b = column / of.keys, j = column - b * of.keys;
  const Share key = Share::load(in.k + column * of.depth, of.depth),
              value = Share::load(in.v + column * of.width, of.width);
  Share d_key, d_value;
  for (int64_t i = of.causal ? j : 0; i < of.queries; ++i) {
    const int64_t row = b * of.queries + i;
    const Share query = Share::load(in.q + row * of.depth, of.depth),
                d_out = Share::load(out.dy + row * of.width, of.width);
    const float mean = d_out.dot(Share::load(out.y + row * of.width, of.width));
    const float share = expf(of.scale * query.dot(key) - out.log_sums[row]);
    d_value.add(share, d_out);
    d_key.add(share * (d_out.dot(value) - mean), query);
  }
  d_key.store(dk + column * of.depth, of.depth, of.scale);
  d_value.store(dv + column * of.width, of.width, 1);
}

Extents extents_of(const char* operation, const Tensor& q, const Tensor& v, const kernels::AttentionOptions& options) {
  check(q.size(2) <= kMostDepth && v.size(2) <= kMostDepth, operation, ": depth ", q.size(2), " and width ", v.size(2),
        ", on CUDA expected at most ", kMostDepth);
  return {q.size(0), q.size(1), q.size(2), v.size(1), v.size(2), static_cast<float>(options.scale), options.causal};
}
Grid warps(int64_t count) {
  constexpr int64_t kPerBlock = kThreads / kWarp;
  return {.blocks = dim3(static_cast<unsigned>((count + kPerBlock - 1) / kPerBlock))};
}
template <class T>
Pointers<T> pointers(const Tensor& q, const Tensor& k, const Tensor& v) {
  return {q.data<T>(), k.data<T>(), v.data<T>()};
}

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernels::AttentionOptions& options, Tensor& y,
               Tensor& log_sums) {
  const Extents of = extents_of("attention", q, v, options);
  visit_fast(q.dtype(), "attention", [&]<class T>(T) {
    launch("attention", q.device(), warps(of.batch * of.queries), attention_kernel<T>, pointers<T>(q, k, v), of,
           y.data<T>(), log_sums.data<float>());
  });
}

void attention_backward(const Tensor& dy, const kernels::AttentionSaved& saved,
                        const kernels::AttentionOptions& options, Tensor& dq, Tensor& dk, Tensor& dv) {
  constexpr const char* kOperation = "attention_backward";
  const Extents of = extents_of(kOperation, saved.q, saved.v, options);
  visit_fast(dy.dtype(), kOperation, [&]<class T>(T) {
    const Pointers<T> in = pointers<T>(saved.q, saved.k, saved.v);
    const Results<T> out{dy.data<T>(), saved.y.data<T>(), saved.log_sums.data<float>()};
    launch(kOperation, dy.device(), warps(of.batch * of.queries), query_gradients<T>, in, out, of, dq.data<T>());
    launch(kOperation, dy.device(), warps(of.batch * of.keys), key_gradients<T>, in, out, of, dk.data<T>(),
           dv.data<T>());
  });
}

}  // namespace

void provide_attention() {
  kernels::attention.provide(Target::cuda, attention);
  kernels::attention_backward.provide(Target::cuda, attention_backward);
}

}  // namespace tern::cuda
