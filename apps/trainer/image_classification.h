#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tern/layers/module.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern {

/// The task of an application that names none: a picture becomes one of several classes. The loss is the
/// cross-entropy, with --label-smoothing in training. Evaluations take the mean logits of --tta's views. The score is
/// the accuracy: with --top N, the share of pictures whose class is among the N most likely ones. Of equal logits, the
/// first counts.
class ImageClassification final : public TaskFor<Layer> {
 public:
  explicit ImageClassification(double label_smoothing = 0, int64_t top = 1, TestViews views = TestViews::none)
      : label_smoothing_(label_smoothing), top_(top), views_(views) {}

  /// tern's own: digits, mnist, tones, cifar10, shapes, shapes224, speech-commands, images.
  std::vector<DatasetEntry> datasets() const override;
  /// "accuracy", or "top-5 accuracy".
  std::vector<Score> scores() const override;
  Forward loss(Layer& model, const DeviceBatch& batch) const override;
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override;

  std::string sample_noun() const override { return "images"; }
  bool smooths_labels() const override { return true; }
  bool ranks_classes() const override { return true; }
  bool averages_views() const override { return true; }
  bool predicts() const override { return true; }
  /// For each image the most likely classes with their probabilities. Reads and answers `eval_batch_size` files at a
  /// time. At the end an InputError names those that cannot be read.
  void predict(Module& model, const TrainSettings& settings,
               const std::function<void(const std::string&)>& print) const override;

 private:
  double label_smoothing_;
  int64_t top_;
  TestViews views_;
};

/// The mean of `model`'s outputs [N, C] for views of `images` [N, channels, H, W]: half for the images, and half for
/// their mirror images; with `crops`, half of both for the two crops at opposite corners of the images with a border of
/// 1 pixel of their mirror image (Jordan, 2024). Throws InputError if the images are too small for crops.
Variable mean_over_views(Layer& model, const Variable& images, TestViews views);

/// Number of rows of `logits` [N, C] whose label has one of their `top` largest values. Of equal values, the first
/// counts.
int64_t count_correct(const Tensor& logits, const Tensor& labels, int64_t top = 1);

}  // namespace tern
