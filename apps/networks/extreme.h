#pragma once

#include <span>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/embedding.h"
#include "tern/layers/linear_cross_entropy.h"
#include "tern/layers/normalization.h"
#include "tern/networks/networks.h"
#include "tern/trainer/task.h"

namespace tern::networks {

/// A network with one hidden layer for extreme multi-label classification: sparse features, batch normalisation and
/// ReLU, and a softmax over all labels. It is IST's network for Amazon-670k (section 4): neither layer has a bias. The
/// gradient of the first layer has the rows of the batch's features only, and the last layer works by chunks of labels.
struct ExtremeClassifier final : Module, SubnetModel {
  struct Options {
    int64_t features = 1, hidden = 1, labels = 1;
    int64_t chunk = 8192;  ///< labels whose logits are in memory at once
  };
  explicit ExtremeClassifier(const Options& options);

  /// Labels by falling logit for the scores: `top` [N, 5]. `precision`: of the activations.
  LinearCrossEntropyOutput operator()(const SparseRows& features, const SparseRows& labels, DType precision);
  /// The values of the hidden neurons: [N, hidden].
  Variable hidden(const SparseRows& features, DType precision);

  /// The hidden layer. Every tensor has an index for each of its neurons.
  SubnetPlan subnet_plan(SubnetScope scope) const override;

  EmbeddingBag& input;
  BatchNorm1d& norm;
  LinearCrossEntropy& output;
};

/// How many of the best labels the scores need.
inline constexpr int64_t kBestLabels = 5;

/// Precision at k: of a sample's k best labels, how many are labels of the sample. Returns one number for k = 1, 3 and
/// 5: the sum of the hits over all samples, and k times the samples. top: i64 [N, 5].
std::vector<Ratio> precision_at_135(const Tensor& top, const SparseRows& labels);

/// Trains an ExtremeClassifier on `--data extreme` or the files of `--data extreme-file`.
const Network& extreme();

}  // namespace tern::networks
