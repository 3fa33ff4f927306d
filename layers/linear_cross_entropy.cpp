#include "tern/layers/linear_cross_entropy.h"

#include "tern/layers/initialize.h"

namespace tern {

LinearCrossEntropy::LinearCrossEntropy(const Options& options)
    : weight(add_parameter("weight", {options.classes, options.in}, default_weight())), options_(options) {}

LinearCrossEntropyOutput LinearCrossEntropy::forward(const Variable& x, const Tensor& labels, const Tensor& offsets,
                                                     int64_t top) {
  const int64_t own = weight.value().size(1);
  const double factor = sum_ ? 1 : static_cast<double>(options_.in) / static_cast<double>(own);
  return linear_cross_entropy(factor == 1 ? x : scale(x, factor), weight.variable(), labels, offsets,
                              {.top = top, .chunk = options_.chunk, .complete = sum_});
}

}  // namespace tern
