#include "tern/kernels/attention.h"

#include <algorithm>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/gemm.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

constexpr int64_t kQueriesAtOnce = 64;  // queries whose scores are computed at once

/// The extents of an attention, and its blocks of queries.
struct Extents {
  Extents(const Tensor& q, const Tensor& v, const kernels::AttentionOptions& options)
      : batch(q.size(0)),
        queries(q.size(1)),
        depth(q.size(2)),
        keys(v.size(1)),
        width(v.size(2)),
        scale(static_cast<float>(options.scale)),
        causal(options.causal) {}

  int64_t blocks() const { return (queries + kQueriesAtOnce - 1) / kQueriesAtOnce; }
  /// The number of keys that query i sees.
  int64_t seen(int64_t i) const { return causal ? std::min(keys, i + 1) : keys; }

  int64_t batch, queries, depth, keys, width;
  float scale;
  bool causal;
};

/// A block of queries: queries [first, first + rows), which together see the first `keys` keys.
struct Block {
  Block(const Extents& of, int64_t number)
      : first(number * kQueriesAtOnce),
        rows(std::min(kQueriesAtOnce, of.queries - first)),
        keys(of.seen(first + rows - 1)) {}

  int64_t first, rows, keys;
};

/// scores [rows, keys] = a [rows, depth] · bᵀ, with b [keys, depth].
void products(const Block& block, int64_t depth, const float* a, const float* b, float* scores) {
  sgemm({.m = block.rows, .n = block.keys, .k = depth, .transpose_b = true}, a, b, scores);
}

/// Turns scores into exp(scale·score - largest) and returns their sums and the largest. Keys that are not seen get 0.
void exponentials(const Extents& of, const Block& block, float* scores, float* largest, float* sums) {
  vectorized([=] {
    for (int64_t r = 0; r < block.rows; ++r) {
      float* row = scores + r * block.keys;
      const int64_t count = of.seen(block.first + r);
      float most = row[0] * of.scale, sum = 0;
#pragma omp simd reduction(max : most)
      for (int64_t j = 0; j < count; ++j) {
        const float score = row[j] * of.scale;
        most = score > most ? score : most;
      }
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < count; ++j) {
        row[j] = exponential(row[j] * of.scale - most);
        sum += row[j];
      }
      for (int64_t j = count; j < block.keys; ++j) row[j] = 0;
      largest[r] = most;
      sums[r] = sum;
    }
  });
}

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernels::AttentionOptions& options, Tensor& y,
               Tensor& log_sums) {
  const Extents of(q, v, options);
  const Tensor queries = q.to(DType::f32), keys = k.to(DType::f32), values = v.to(DType::f32);
  const Tensor result = y.dtype() == DType::f32 ? y : Tensor::empty(y.shape());
  const float *from = queries.data<float>(), *key = keys.data<float>(), *value = values.data<float>();
  float *to = result.data<float>(), *logs = log_sums.data<float>();
  parallel_for(0, of.batch * of.blocks(), 1, [=](int64_t first, int64_t last) {
    std::vector<float> scores(static_cast<size_t>(kQueriesAtOnce * of.keys));
    float largest[kQueriesAtOnce], sums[kQueriesAtOnce];
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / of.blocks(), row = b * of.queries;
      const Block block(of, task % of.blocks());
      float* out = to + (row + block.first) * of.width;
      products(block, of.depth, from + (row + block.first) * of.depth, key + b * of.keys * of.depth, scores.data());
      exponentials(of, block, scores.data(), largest, sums);
      sgemm({.m = block.rows, .n = of.width, .k = block.keys}, scores.data(), value + b * of.keys * of.width, out);
      for (int64_t r = 0; r < block.rows; ++r) {
        const float share = 1.0f / sums[r];
        for (int64_t e = 0; e < of.width; ++e) out[r * of.width + e] *= share;
        logs[row + block.first + r] = largest[r] + logarithm_of_any(sums[r]);
      }
    }
  });
  if (y.dtype() != DType::f32) y.copy_from(result);
}

/// Turns scores s and products d = dy·v into the shares p = exp(scale·s - log_sum) and ds = scale·p·(d - mean).
void score_gradients(const Extents& of, const Block& block, const float* log_sums, const float* means, float* scores,
                     float* d_scores) {
  vectorized([=] {
    for (int64_t r = 0; r < block.rows; ++r) {
      float *row = scores + r * block.keys, *d_row = d_scores + r * block.keys;
      const int64_t count = of.seen(block.first + r);
      const float log_sum = log_sums[r], mean = means[r];
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        row[j] = exponential(row[j] * of.scale - log_sum);
        d_row[j] = of.scale * row[j] * (d_row[j] - mean);
      }
      for (int64_t j = count; j < block.keys; ++j) row[j] = d_row[j] = 0;
    }
  });
}

// One thread computes the gradients of one element of the batch, so that the sums have one order.
void attention_backward(const Tensor& dy, const kernels::AttentionSaved& saved,
                        const kernels::AttentionOptions& options, Tensor& dq, Tensor& dk, Tensor& dv) {
  const Extents of(saved.q, saved.v, options);
  const auto f32 = [](const Tensor& tensor) { return tensor.to(DType::f32); };
  const Tensor queries = f32(saved.q), keys = f32(saved.k), values = f32(saved.v), outputs = f32(saved.y),
               d_outputs = f32(dy);
  const auto buffer = [](const Tensor& tensor) {
    return tensor.dtype() == DType::f32 ? tensor : Tensor::empty(tensor.shape());
  };
  const Tensor d_queries = buffer(dq), d_keys = buffer(dk), d_values = buffer(dv);
  const float *log_sums = saved.log_sums.data<float>(), *out = outputs.data<float>(), *d_out = d_outputs.data<float>();
  const float *query = queries.data<float>(), *key = keys.data<float>(), *value = values.data<float>();
  float *to_q = d_queries.data<float>(), *to_k = d_keys.data<float>(), *to_v = d_values.data<float>();
  parallel_for(0, of.batch, 1, [=](int64_t first, int64_t last) {
    std::vector<float> scores(static_cast<size_t>(kQueriesAtOnce * of.keys)), d_scores(scores.size());
    float means[kQueriesAtOnce];
    for (int64_t b = first; b < last; ++b) {
      const float *all_keys = key + b * of.keys * of.depth, *all_values = value + b * of.keys * of.width;
      float *d_all_keys = to_k + b * of.keys * of.depth, *d_all_values = to_v + b * of.keys * of.width;
      std::fill_n(d_all_keys, of.keys * of.depth, 0.0f);
      std::fill_n(d_all_values, of.keys * of.width, 0.0f);
      for (int64_t number = 0; number < of.blocks(); ++number) {
        const Block block(of, number);
        const int64_t row = b * of.queries + block.first;
        const float *own = query + row * of.depth, *d_own = d_out + row * of.width;
        for (int64_t r = 0; r < block.rows; ++r) {
          means[r] = 0;
          for (int64_t e = 0; e < of.width; ++e) means[r] += d_own[r * of.width + e] * out[(row + r) * of.width + e];
        }
        products(block, of.depth, own, all_keys, scores.data());
        products(block, of.width, d_own, all_values, d_scores.data());
        score_gradients(of, block, log_sums + row, means, scores.data(), d_scores.data());
        sgemm({.m = block.rows, .n = of.depth, .k = block.keys}, d_scores.data(), all_keys, to_q + row * of.depth);
        sgemm({.m = block.keys, .n = of.depth, .k = block.rows, .transpose_a = true, .beta = 1}, d_scores.data(), own,
              d_all_keys);
        sgemm({.m = block.keys, .n = of.width, .k = block.rows, .transpose_a = true, .beta = 1}, scores.data(), d_own,
              d_all_values);
      }
    }
  });
  const std::pair<const Tensor&, const Tensor&> results[] = {{d_queries, dq}, {d_keys, dk}, {d_values, dv}};
  for (const auto& [found, to] : results)
    if (to.dtype() != DType::f32) to.copy_from(found);
}

}  // namespace

void provide_attention() {
  kernels::attention.provide(Target::cpu, attention);
  kernels::attention_backward.provide(Target::cpu, attention_backward);
}

}  // namespace tern::cpu
