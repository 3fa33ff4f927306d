#include "tern/kernels/softmax_chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using kernels::Bags;

/// Calls body(row) for every row of a chunk, vectorised and on all threads.
template <class Body>
void for_each_chunk_row(const Tensor& z, Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 8 * z.size(1)));
  parallel_vectorized(z.size(0), grain, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) body(row);
  });
}

void softmax_chunk(const Tensor& z, const Bags& labels, int64_t first, Tensor& maximum, Tensor& sum, Tensor& hits) {
  visit_fast(z.dtype(), "softmax_chunk", [&]<class T>(T) {
    const int64_t columns = z.size(1);
    const T* in = z.data<T>();
    const auto *label = labels.indices.data<int64_t>(), *offset = labels.offsets.data<int64_t>();
    float *largest = maximum.data<float>(), *total = sum.data<float>(), *hit = hits.data<float>();
    for_each_chunk_row(z, [=](int64_t row) {
      const T* from = in + row * columns;
      const float before = largest[row];
      float most = before;
#pragma omp simd reduction(max : most)
      for (int64_t j = 0; j < columns; ++j) most = std::max(most, load(from + j));
      const float shift = std::max(most, std::numeric_limits<float>::lowest());  // -∞ - -∞ is NaN
      float added = 0;
#pragma omp simd reduction(+ : added)
      for (int64_t j = 0; j < columns; ++j) added += exponential(load(from + j) - shift);
      total[row] = (most > before ? total[row] * std::exp(before - most) : total[row]) + added;
      largest[row] = most;
      for (int64_t e = offset[row]; e < offset[row + 1]; ++e)
        if (first <= label[e] && label[e] < first + columns) hit[row] += load(from + (label[e] - first));
    });
  });
}

void softmax_chunk_loss(const Tensor& maximum, const Tensor& sum, const Tensor& hits, const Bags& labels,
                        Tensor& logsumexp, Tensor& loss) {
  const int64_t rows = maximum.numel();
  const auto* offset = labels.offsets.data<int64_t>();
  double total = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const double log_sum = maximum.data<float>()[n] + std::log(static_cast<double>(sum.data<float>()[n]));
    logsumexp.data<float>()[n] = static_cast<float>(log_sum);
    const int64_t count = offset[n + 1] - offset[n];
    if (count > 0) total += log_sum - static_cast<double>(hits.data<float>()[n]) / static_cast<double>(count);
  }
  *loss.data<float>() = static_cast<float>(total / static_cast<double>(rows));
}

void softmax_chunk_backward(const Tensor& logsumexp, const Bags& labels, int64_t first, const Tensor& dloss,
                            const Tensor& z, Tensor& dz) {
  visit_fast(z.dtype(), "softmax_chunk_backward", [&]<class T>(T) {
    const int64_t columns = z.size(1);
    const T* in = z.data<T>();
    T* out = dz.data<T>();
    const auto *label = labels.indices.data<int64_t>(), *offset = labels.offsets.data<int64_t>();
    const float* log_sum = logsumexp.data<float>();
    const auto scale = static_cast<float>(dloss.item() / static_cast<double>(z.size(0)));
    for_each_chunk_row(z, [=](int64_t row) {
      const int64_t count = offset[row + 1] - offset[row];
      const T* from = in + row * columns;
      T* to = out + row * columns;
      const float shift = log_sum[row], own_scale = count > 0 ? scale : 0.0f;
      // The elements of labels are rounded once, after the subtraction. dz may be z, so their logits are read before.
      std::vector<std::pair<int64_t, float>> hits;
      for (int64_t e = offset[row]; e < offset[row + 1]; ++e)
        if (first <= label[e] && label[e] < first + columns)
          hits.emplace_back(label[e] - first, load(from + (label[e] - first)));
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) store(to + j, own_scale * exponential(load(from + j) - shift));
      std::ranges::sort(hits);  // a label can be there twice
      for (size_t i = 0, end = 0; i < hits.size(); i = end) {
        const auto [column, logit] = hits[i];
        while (end < hits.size() && hits[end].first == column) ++end;
        const float share = static_cast<float>(end - i) / static_cast<float>(count);
        store(to + column, own_scale * (exponential(logit - shift) - share));
      }
    });
  });
}

void top_classes(const Tensor& z, int64_t first, Tensor& values, Tensor& classes) {
  visit_fast(z.dtype(), "top_classes", [&]<class T>(T) {
    const int64_t columns = z.size(1), count = values.size(1);
    const T* in = z.data<T>();
    float* value = values.data<float>();
    int64_t* place = classes.data<int64_t>();
    for_each_chunk_row(z, [=](int64_t row) {
      const T* from = in + row * columns;
      float* best = value + row * count;
      int64_t* best_place = place + row * count;
      for (int64_t j = 0; j < columns; ++j) {
        const float logit = load(from + j);
        if (!(logit > best[count - 1])) continue;
        int64_t k = count - 1;
        for (; k > 0 && logit > best[k - 1]; --k) {
          best[k] = best[k - 1];
          best_place[k] = best_place[k - 1];
        }
        best[k] = logit;
        best_place[k] = first + j;
      }
    });
  });
}

}  // namespace

void provide_softmax_chunk() {
  kernels::softmax_chunk.provide(Target::cpu, softmax_chunk);
  kernels::softmax_chunk_loss.provide(Target::cpu, softmax_chunk_loss);
  kernels::softmax_chunk_backward.provide(Target::cpu, softmax_chunk_backward);
  kernels::top_classes.provide(Target::cpu, top_classes);
}

}  // namespace tern::cpu
