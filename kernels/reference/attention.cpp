#include "tern/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

/// The extents of an attention.
struct Extents {
  Extents(const Tensor& q, const Tensor& v)
      : batch(q.size(0)), queries(q.size(1)), depth(q.size(2)), keys(v.size(1)), width(v.size(2)) {}
  /// The number of keys that query i sees.
  int64_t seen(int64_t i, const kernels::AttentionOptions& options) const {
    return options.causal ? std::min(keys, i + 1) : keys;
  }

  int64_t batch, queries, depth, keys, width;
};

template <class T>
wider_t<T> dot(const T* a, const T* b, int64_t count) {
  wider_t<T> sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += wider_t<T>(a[i]) * wider_t<T>(b[i]);
  return sum;
}

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const kernels::AttentionOptions& options, Tensor& y,
               Tensor& log_sums) {
  const Extents of(q, v);
  visit_floating(q.dtype(), "attention", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const auto scale = static_cast<Wide>(options.scale);
    for (int64_t b = 0; b < of.batch; ++b)
      for (int64_t i = 0; i < of.queries; ++i) {
        const T* query = q.data<T>() + (b * of.queries + i) * of.depth;
        std::vector<Wide> scores(static_cast<size_t>(of.seen(i, options)));
        for (size_t j = 0; j < scores.size(); ++j)
          scores[j] = scale * dot(query, k.data<T>() + (b * of.keys + static_cast<int64_t>(j)) * of.depth, of.depth);
        const Wide largest = *std::ranges::max_element(scores);
        std::vector<Wide> sums(static_cast<size_t>(of.width));
        Wide total = 0;
        for (size_t j = 0; j < scores.size(); ++j) {
          const Wide share = std::exp(scores[j] - largest);
          const T* value = v.data<T>() + (b * of.keys + static_cast<int64_t>(j)) * of.width;
          for (size_t e = 0; e < sums.size(); ++e) sums[e] += share * Wide(value[e]);
          total += share;
        }
        for (size_t e = 0; e < sums.size(); ++e)
          y.data<T>()[static_cast<size_t>((b * of.queries + i) * of.width) + e] = static_cast<T>(sums[e] / total);
        log_sums.data<Wide>()[b * of.queries + i] = largest + std::log(total);
      }
  });
}

// With p the shares of the keys: dv_j = Σ_i p_ij dy_i, ds_ij = p_ij (dy_i·v_j - dy_i·y_i), dq_i = scale Σ_j ds_ij k_j,
// dk_j = scale Σ_i ds_ij q_i.
void attention_backward(const Tensor& dy, const kernels::AttentionSaved& saved,
                        const kernels::AttentionOptions& options, Tensor& dq, Tensor& dk, Tensor& dv) {
  const Extents of(saved.q, saved.v);
  visit_floating(dy.dtype(), "attention_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const auto scale = static_cast<Wide>(options.scale);
    std::vector<Wide> d_queries(static_cast<size_t>(dq.numel())), d_keys(static_cast<size_t>(dk.numel())),
        d_values(static_cast<size_t>(dv.numel()));
    for (int64_t b = 0; b < of.batch; ++b)
      for (int64_t i = 0; i < of.queries; ++i) {
        const int64_t row = b * of.queries + i;
        const T *query = saved.q.data<T>() + row * of.depth, *d_out = dy.data<T>() + row * of.width;
        const Wide mean = dot(d_out, saved.y.data<T>() + row * of.width, of.width);
        for (int64_t j = 0; j < of.seen(i, options); ++j) {
          const int64_t column = b * of.keys + j;
          const T *key = saved.k.data<T>() + column * of.depth, *value = saved.v.data<T>() + column * of.width;
          const Wide share = std::exp(scale * dot(query, key, of.depth) - saved.log_sums.data<Wide>()[row]);
          const Wide d_score = scale * share * (dot(d_out, value, of.width) - mean);
          for (int64_t e = 0; e < of.width; ++e) d_values[column * of.width + e] += share * Wide(d_out[e]);
          for (int64_t d = 0; d < of.depth; ++d) {
            d_queries[row * of.depth + d] += d_score * Wide(key[d]);
            d_keys[column * of.depth + d] += d_score * Wide(query[d]);
          }
        }
      }
    const auto round_to = [](const std::vector<Wide>& sums, const Tensor& to) {
      for (size_t i = 0; i < sums.size(); ++i) to.data<T>()[i] = static_cast<T>(sums[i]);
    };
    round_to(d_queries, dq);
    round_to(d_keys, dk);
    round_to(d_values, dv);
  });
}

}  // namespace

void provide_attention() {
  kernels::attention.provide(Target::reference, attention);
  kernels::attention_backward.provide(Target::reference, attention_backward);
}

}  // namespace tern::reference
