#include "tern/networks/extreme.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/data/extreme.h"
#include "tern/layers/initialize.h"

namespace tern::networks {

// A row of features has norm 1 or so. With weights of N(0, 1), as in PyTorch's EmbeddingBag, so have its sums.
ExtremeClassifier::ExtremeClassifier(const Options& options)
    : input(add<EmbeddingBag>("input", {.columns = options.features,
                                        .features = options.hidden,
                                        .bias = false,
                                        .rows = RowsOfGradient::touched,
                                        .weight_initializer = normal(1)})),
      norm(add<BatchNorm1d>("norm", {.features = options.hidden, .relu = true})),
      output(add<LinearCrossEntropy>("output",
                                     {.in = options.hidden, .classes = options.labels, .chunk = options.chunk})) {}

LinearCrossEntropyOutput ExtremeClassifier::operator()(const SparseRows& features, const SparseRows& labels,
                                                       DType precision) {
  return run([&] { return output(hidden(features, precision), labels.indices, labels.offsets, kBestLabels); });
}

Variable ExtremeClassifier::hidden(const SparseRows& features, DType precision) {
  const Variable sums = input(features.indices, features.offsets, features.values);
  return norm(convert(sums, precision));
}

SubnetPlan ExtremeClassifier::subnet_plan(SubnetScope scope) const {
  if (scope != SubnetScope::fc) return {};
  return {{{"hidden layer",
            {{"input.weight", 1},
             {"norm.weight", 0},
             {"norm.bias", 0},
             {"norm.running_mean", 0},
             {"norm.running_var", 0},
             {"output.weight", 1}}}}};
}

std::vector<Ratio> precision_at_135(const Tensor& top, const SparseRows& labels) {
  const auto best = top.span<int64_t>(), label = labels.indices.span<int64_t>(),
             offset = labels.offsets.span<int64_t>();
  const auto rows = offset.size() - 1;
  std::vector<Ratio> precisions;
  for (const size_t k : {size_t{1}, size_t{3}, size_t{5}}) {
    int64_t hits = 0;
    for (size_t n = 0; n < rows; ++n) {
      const auto own = label.subspan(static_cast<size_t>(offset[n]), static_cast<size_t>(offset[n + 1] - offset[n]));
      for (const int64_t found : best.subspan(n * kBestLabels, k)) hits += std::ranges::find(own, found) != own.end();
    }
    precisions.push_back({static_cast<double>(hits), static_cast<double>(k * rows)});
  }
  return precisions;
}

namespace {

constexpr const char *kDrawn = "extreme", *kFile = "extreme-file";
/// Drawn test samples: as many as a tenth of those for training.
constexpr int64_t kTestShare = 10;

std::shared_ptr<const Dataset> load_drawn(const TrainSettings& settings, Split split) {
  const int64_t samples = settings.counts.at("samples");
  return std::make_shared<DrawnExtreme>(
      DrawnExtreme::Options{.seed = static_cast<uint64_t>(settings.seed),
                            .split = split,
                            .features = settings.counts.at("inputs"),
                            .labels = settings.counts.at("labels"),
                            .samples = split == Split::train ? samples : std::max<int64_t>(1, samples / kTestShare)});
}

std::shared_ptr<const Dataset> load_file(const TrainSettings& settings, Split split) {
  return std::make_shared<ExtremeFile>(*open_source(find_extreme_file(settings.data_dir, split)));
}

struct ExtremeClassification final : TaskFor<ExtremeClassifier> {
  std::vector<DatasetEntry> datasets() const override {
    return {{.name = kDrawn, .load = load_drawn}, {.name = kFile, .needs_folder = true, .load = load_file}};
  }
  std::vector<Score> scores() const override {
    return {{.name = "precision at 1"}, {.name = "precision at 3"}, {.name = "precision at 5"}};
  }
  Forward loss(ExtremeClassifier& model, const DeviceBatch& batch) const override {
    const auto [loss, top] = model(batch.sparse("features"), batch.sparse("labels"), batch.precision());
    return {loss, {top}};
  }
  void run_to_last_normalization(ExtremeClassifier& model, const DeviceBatch& batch) const override {
    model.hidden(batch.sparse("features"), batch.precision());
  }
  std::vector<Ratio> count(std::span<const Tensor> outputs, const Batch& batch) const override {
    return precision_at_135(outputs[0], batch.sparse("labels"));
  }
};

/// A file says itself how many inputs and labels there are.
void settle_extreme(TrainSettings& settings, const IsGiven& given) {
  for (const char* flag : {"inputs", "labels", "samples"})
    check_input(settings.data != kFile || !given(flag), "--", flag, ": found with --data ", kFile,
                ", whose first line has this number; expected only with --data ", kDrawn);
}

std::unique_ptr<Module> make_extreme(const ModelSpec& spec) {
  return std::make_unique<ExtremeClassifier>(ExtremeClassifier::Options{.features = spec.field("features").shape[0],
                                                                        .hidden = spec.counts.at("hidden"),
                                                                        .labels = spec.field("labels").shape[0]});
}

}  // namespace

const Network& extreme() {
  static const Network network = {
      .name = "extreme",
      .model = make_extreme,
      .counts = {{.flag = "hidden", .value = 512, .help = "Neurons of the hidden layer"},
                 {.flag = "inputs", .value = 13'591, .help = "Features of drawn data"},
                 {.flag = "labels", .value = 67'009, .help = "Labels of drawn data"},
                 {.flag = "samples", .value = 20'000, .help = "Training samples of drawn data"}},
      .recipe = {.defaults = {.data = kDrawn,
                              .batch_size = 256,
                              .eval_batch_size = 256,
                              .optimizer = UpdateRule::sgd,
                              .lr = 0.3},
                 .settle = settle_extreme},
      .task = make_task<ExtremeClassification>};
  return network;
}

}  // namespace tern::networks
