#pragma once

#include <cstdint>
#include <utility>

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// The last layer of a classifier with very many classes, and its loss: `linear_cross_entropy` with weight [classes,
/// in], without a bias. First values: Linear's, uniform in ±1/√in.
///
/// A narrower weight, as a subnet has it, multiplies its inputs by in / (its own inputs). This is the factor of IST's
/// equation (2), which is also that of inverted dropout: the logits of the whole model then are the mean of those of
/// the subnets, and not their sum. Batch normalisation of the logits would do the same, but it would subtract each
/// class's mean, and so hide how frequent the class is. For a rare class this is most of what the network knows.
class LinearCrossEntropy final : public Module, public InputParallel {
 public:
  struct Options {
    int64_t in = 1, classes = 1;
    int64_t chunk = 8192;  ///< classes whose logits are in memory at once
  };
  explicit LinearCrossEntropy(const Options& options);

  /// x: [N, in]. labels, offsets: those of `linear_cross_entropy`. `top`: how many of the best classes to find.
  LinearCrossEntropyOutput operator()(const Variable& x, const Tensor& labels, const Tensor& offsets, int64_t top = 0) {
    return run([&] { return forward(x, labels, offsets, top); });
  }

  /// For evaluation: the result has no gradient. The ranks together have all inputs, so the factor is 1.
  void add_over_ranks(SumOverRanks sum) override { sum_ = std::move(sum); }

  Parameter& weight;

 private:
  LinearCrossEntropyOutput forward(const Variable& x, const Tensor& labels, const Tensor& offsets, int64_t top);

  Options options_;
  SumOverRanks sum_;
};

}  // namespace tern
