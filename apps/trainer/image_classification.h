#pragma once

#include <string>
#include <vector>

#include "tern/layers/module.h"
#include "tern/trainer/task.h"

namespace tern {

/// The task of an application that names none: a picture becomes one of several classes. The loss is the
/// cross-entropy, with --label-smoothing in training; the score is the accuracy. Of equal logits, the first counts.
class ImageClassification final : public TaskFor<Layer> {
 public:
  explicit ImageClassification(double label_smoothing = 0) : label_smoothing_(label_smoothing) {}

  /// tern's own: digits, mnist, tones, cifar10, shapes, shapes224, speech-commands, images.
  std::vector<DatasetEntry> datasets() const override;
  std::vector<Score> scores() const override { return {{.name = "accuracy"}}; }
  Forward loss(Layer& model, const DeviceBatch& batch) const override;
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override;

  std::string sample_noun() const override { return "images"; }
  bool smooths_labels() const override { return true; }
  bool predicts() const override { return true; }
  /// For each image the most likely classes with their probabilities. Reads all images before it runs the model.
  std::string predict(Module& model, const TrainSettings& settings) const override;

 private:
  double label_smoothing_;
};

/// Number of rows of `logits` [N, C] whose largest value is at their label. Of equal values, the first counts.
int64_t count_correct(const Tensor& logits, const Tensor& labels);

}  // namespace tern
