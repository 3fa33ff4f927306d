#include "tern/kernels/softmax_chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using kernels::Bags;

std::span<const int64_t> labels_of_row(const Bags& labels, int64_t n) {
  const int64_t* offset = labels.offsets.data<int64_t>();
  return {labels.indices.data<int64_t>() + offset[n], static_cast<size_t>(offset[n + 1] - offset[n])};
}

void softmax_chunk(const Tensor& z, const Bags& labels, int64_t first, Tensor& maximum, Tensor& sum, Tensor& hits) {
  const int64_t rows = z.size(0), columns = z.size(1);
  visit_floating(z.dtype(), "softmax_chunk", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t n = 0; n < rows; ++n) {
      const T* in = z.data<T>() + n * columns;
      Wide &largest = maximum.data<Wide>()[n], &total = sum.data<Wide>()[n];
      const Wide before = largest;
      for (int64_t c = 0; c < columns; ++c) largest = std::max(largest, Wide(in[c]));
      if (largest > before) total *= std::exp(before - largest);
      const Wide shift = largest == -std::numeric_limits<Wide>::infinity() ? Wide(0) : largest;
      for (int64_t c = 0; c < columns; ++c) total += std::exp(in[c] - shift);
      for (const int64_t label : labels_of_row(labels, n))
        if (first <= label && label < first + columns) hits.data<Wide>()[n] += in[label - first];
    }
  });
}

void softmax_chunk_loss(const Tensor& maximum, const Tensor& sum, const Tensor& hits, const Bags& labels,
                        Tensor& logsumexp, Tensor& loss) {
  const int64_t rows = maximum.numel();
  visit_floating(maximum.dtype(), "softmax_chunk_loss", [&]<class T>(T) {
    using Wide = wider_t<T>;
    Wide total = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const Wide log_sum = maximum.data<Wide>()[n] + std::log(sum.data<Wide>()[n]);
      logsumexp.data<Wide>()[n] = log_sum;
      const size_t count = labels_of_row(labels, n).size();
      if (count > 0) total += log_sum - hits.data<Wide>()[n] / static_cast<Wide>(count);
    }
    *loss.data<Wide>() = total / static_cast<Wide>(rows);
  });
}

void softmax_chunk_backward(const Tensor& logsumexp, const Bags& labels, int64_t first, const Tensor& dloss,
                            const Tensor& z, Tensor& dz) {
  const int64_t rows = z.size(0), columns = z.size(1);
  visit_floating(z.dtype(), "softmax_chunk_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const Wide scale = *dloss.data<Wide>() / static_cast<Wide>(rows);
    for (int64_t n = 0; n < rows; ++n) {
      const auto own = labels_of_row(labels, n);
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t i = n * columns + c;
        const auto target = static_cast<Wide>(std::ranges::count(own, first + c)) / static_cast<Wide>(own.size());
        dz.data<T>()[i] = own.empty()
                              ? T(0)
                              : static_cast<T>(scale * (std::exp(z.data<T>()[i] - logsumexp.data<Wide>()[n]) - target));
      }
    }
  });
}

void top_classes(const Tensor& z, int64_t first, Tensor& values, Tensor& classes) {
  const int64_t rows = z.size(0), columns = z.size(1), count = values.size(1);
  visit_floating(z.dtype(), "top_classes", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t n = 0; n < rows; ++n) {
      Wide* best = values.data<Wide>() + n * count;
      int64_t* place = classes.data<int64_t>() + n * count;
      for (int64_t c = 0; c < columns; ++c) {
        const Wide value = z.data<T>()[n * columns + c];
        if (!(value > best[count - 1])) continue;
        int64_t k = count - 1;
        for (; k > 0 && value > best[k - 1]; --k) {
          best[k] = best[k - 1];
          place[k] = place[k - 1];
        }
        best[k] = value;
        place[k] = first + c;
      }
    }
  });
}

}  // namespace

void provide_softmax_chunk() {
  kernels::softmax_chunk.provide(Target::reference, softmax_chunk);
  kernels::softmax_chunk_loss.provide(Target::reference, softmax_chunk_loss);
  kernels::softmax_chunk_backward.provide(Target::reference, softmax_chunk_backward);
  kernels::top_classes.provide(Target::reference, top_classes);
}

}  // namespace tern::reference
