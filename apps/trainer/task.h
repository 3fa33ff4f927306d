#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/autograd/variable.h"
#include "tern/core/error.h"
#include "tern/data/sample.h"
#include "tern/layers/module.h"
#include "tern/trainer/dataset_entry.h"

namespace tern {

struct TrainSettings;

/// One way to tell how good a model is. Its value is a Ratio over all samples.
struct Score {
  std::string name;              ///< "accuracy", "phone error rate"
  std::string unit = "%";        ///< "%": shown times 100; any other unit or none: shown as it is
  bool higher_is_better = true;  ///< false: an error rate; the log's start event tells its readers

  /// The factor between a ratio and the number that people see.
  double shown_factor() const { return unit == "%" ? 100 : 1; }
  /// "97.50 %", "3.2100 nats", "12.0000"
  std::string text(double value) const;
  /// Whether `value` is as good as `target`, which is the number that people see, or better. Values that differ by
  /// rounding errors only are equal.
  bool reaches(double value, double target) const;
  /// The name as a key of JSON and of TensorBoard: "phone_error_rate".
  std::string key() const;
};

/// Throws Error unless there are scores, and their keys are distinct and are not names of the log's own numbers.
void check_scores(const std::vector<Score>& scores);

/// A score over some samples, as a fraction. The ratios of several batches or ranks are added part by part.
struct Ratio {
  double numerator = 0;
  double denominator = 0;

  /// 0 over nothing.
  double value() const { return denominator == 0 ? 0 : numerator / denominator; }
  Ratio& operator+=(const Ratio& other) {
    numerator += other.numerator;
    denominator += other.denominator;
    return *this;
  }
};

/// A batch on the device of the model. A value; copies share the tensors.
class DeviceBatch {
 public:
  /// `on_device` has the tensors of `on_cpu` on the model's device. `precision` is the dtype of activations. `data` is
  /// the name of the data set in messages.
  DeviceBatch(Batch on_device, Batch on_cpu, DType precision, std::string data = {})
      : on_device_(std::move(on_device)), on_cpu_(std::move(on_cpu)), precision_(precision), data_(std::move(data)) {}

  int64_t size() const { return on_device_.size(); }
  /// A tensor of the batch on the device; see Batch for the names. "image" is in channels_last; in a training on a GPU
  /// in strict fp32 it can be row-major. With --precision bf16 it is bf16 there, and has spare channels if a layer of
  /// the model takes them (Conv2d::Options).
  const Tensor& operator[](std::string_view name) const { return on_device_[name]; }
  bool has(std::string_view name) const { return on_device_.has(name); }
  SparseRows sparse(const std::string& field) const { return on_device_.sparse(field); }
  /// A floating tensor as input of the model: converted to `dtype`, or else to the dtype of activations, which
  /// --precision sets. Throws InputError with data set, sample and field if its elements are not floats.
  Variable input(std::string_view name, std::optional<DType> dtype = {}) const;
  /// The sample of a row, for messages: "data set 'digits, training', sample 12".
  std::string sample_name(int64_t row) const;
  /// The name of the data set, for messages.
  const std::string& data() const { return data_; }
  /// The samples' indices in the data set, on the device.
  const Tensor& indices() const { return on_device_.indices(); }
  const Batch& on_device() const { return on_device_; }
  const Batch& on_cpu() const { return on_cpu_; }
  DType precision() const { return precision_; }

 private:
  Batch on_device_, on_cpu_;
  DType precision_;
  std::string data_;
};

/// The result of a forward pass.
struct Forward {
  Variable loss;                       ///< one number: the mean over the samples of the batch
  std::vector<Variable> outputs = {};  ///< what the scores are counted from

  /// The values of `outputs`.
  std::vector<Tensor> values() const;
};

/// What a network is trained for: data sets, a loss, and scores. Derive from `TaskFor<Model>`. Ranks that are threads
/// share a task: its members are const and thread-safe.
class Task {
 public:
  virtual ~Task() = default;

  /// The data sets that --data accepts. The first is the default, unless the application's defaults name one. They do
  /// not depend on any setting.
  virtual std::vector<DatasetEntry> datasets() const = 0;
  /// At least one. Evaluations print and log all of them in this order, and a plot has a chart for each.
  virtual std::vector<Score> scores() const = 0;
  /// Runs `model` on a batch, on its device. The mode of the model tells training from evaluation. A recorded step
  /// (--cuda-graph) repeats the work on the device only, not what this computes on the CPU.
  virtual Forward forward(Module& model, const DeviceBatch& batch) const = 0;
  /// Runs at least those layers that batch normalisation needs, to take its statistics from this batch.
  virtual void run_normalized_layers(Module& model, const DeviceBatch& batch) const { forward(model, batch); }
  /// One ratio per score, from `Forward::outputs` and the batch, all on the CPU.
  virtual std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const = 0;

  /// What a sample is called in the plural: "images".
  virtual std::string sample_noun() const { return "samples"; }
  /// Whether the loss uses --label-smoothing.
  virtual bool smooths_labels() const { return false; }
  /// Whether the score uses --top.
  virtual bool ranks_classes() const { return false; }
  /// Whether evaluations use --tta.
  virtual bool averages_views() const { return false; }
  /// Whether `predict` works.
  virtual bool predicts() const { return false; }
  /// Passes to `print` what --predict FILE... prints, in whole lines. Throws InputError if a file is wrong.
  virtual void predict(Module& model, const TrainSettings& settings,
                       const std::function<void(const std::string&)>& print) const;
};

/// A task for one type of model, so that its loss needs no cast.
template <std::derived_from<Module> Model>
class TaskFor : public Task {
 public:
  virtual Forward loss(Model& model, const DeviceBatch& batch) const = 0;
  /// What `run_normalized_layers` runs: here everything. Override it if costly layers come after the last
  /// normalisation.
  virtual void run_to_last_normalization(Model& model, const DeviceBatch& batch) const { loss(model, batch); }

  Forward forward(Module& model, const DeviceBatch& batch) const final { return loss(own(model), batch); }
  void run_normalized_layers(Module& model, const DeviceBatch& batch) const final {
    run_to_last_normalization(own(model), batch);
  }

 private:
  static Model& own(Module& model) {
    auto* own = dynamic_cast<Model*>(&model);
    check(own != nullptr, "the application's model is not of the type that its task trains");
    return *own;
  }
};

}  // namespace tern
