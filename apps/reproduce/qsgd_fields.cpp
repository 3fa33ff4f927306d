#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/run_settings.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/core/error.h"
#include "tern/kernels/layout.h"
#include "tern/networks/resnet.h"
#include "tern/optim/schedule.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/run/recipe.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// The presets of QSGD's section 5, each with buckets along the flattened tensor and along whole receptive fields.
constexpr const char* kFieldPresets[] = {"qsgd:bits=2,bucket=128", "qsgd:bits=4,bucket=512", "qsgd:bits=8,bucket=512"};
constexpr const char* kAligns[] = {"none", "field"};
constexpr const char* kFieldRun = "gradients";
constexpr int64_t kFieldSnapshots = 3;

std::string spec_of(const char* preset, const char* align) { return fmt::format("{},align={}", preset, align); }

/// Trains ResNet-20 with floats in this process, step by step.
class Training {
 public:
  explicit Training(const TrainSettings& settings)
      : settings_(settings),
        task_(task_of(settings)),
        data_(load_run_data(settings)),
        model_(make_model(networks::resnet().application(), settings)),
        optimizer_(make_optimizer(settings, *model_)),
        schedule_(make_schedule(settings, settings.iterations.value())),
        loader_(*data_.training,
                Sampler{.size = data_.training->size(), .shuffle = true, .seed = static_cast<uint64_t>(settings.seed)},
                LoaderOptions{.batch_size = settings.batch_size,
                              .seed = static_cast<uint64_t>(settings.seed),
                              .transform = transform_for(settings, *data_.training)}) {}

  /// Computes the gradients of a step, and calls observe(name, gradient) for each filter bank and matrix.
  template <class Observe>
  void step(int64_t step, const Observe& observe) {
    if (step % loader_.batches() == 0) loader_.start({.epoch = step / loader_.batches()});
    const auto batch = loader_.next().value();
    model_->begin_step({.seed = static_cast<uint64_t>(settings_.seed),
                        .step = static_cast<uint32_t>(step),
                        .samples = batch.indices()});
    optimizer_->zero_gradients();
    task_->forward(*model_, DeviceBatch(batch, batch, DType::f32)).loss.backward();
    for (const auto& [name, parameter] : model_->parameters()) {
      if (parameter->value().shape().rank() < 2) continue;
      Tensor gradient = Tensor::empty(parameter->gradient().shape());
      kernels::convert(parameter->gradient(), gradient);
      observe(name, gradient);
    }
    optimizer_->set_learning_rate(schedule_(step));
    optimizer_->step();
  }

 private:
  TrainSettings settings_;
  std::shared_ptr<const Task> task_;
  RunData data_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  DataLoader loader_;
};

/// Sums over the tensors and draws of one step.
struct Cost {
  double bits = 0, elements = 0, errors = 0, squares = 0;
};

void add_cost(const std::string& spec, const GradientTag& tag, const Tensor& g, Cost& cost) {
  std::vector<std::byte> message;
  const auto codec = make_codec(spec);
  codec->encode(tag, g, message);
  Tensor decoded = Tensor::zeros(g.shape());
  codec->decode_add(tag, message, decoded);
  cost.bits += 8 * static_cast<double>(message.size());
  cost.elements += static_cast<double>(g.numel());
  for (size_t i = 0; i < g.span<float>().size(); ++i) {
    const double x = g.span<float>()[i], error = decoded.span<float>()[i] - x;
    cost.errors += error * error;
    cost.squares += x * x;
  }
}

/// For each codec, the bits an element and ‖Q(g) − g‖² / ‖g‖² of the first, the middle and the last step.
Numbers observe(TrainSettings settings, int64_t draws, const StudyProgress& progress) {
  prepare_machine(settings);
  Training training(settings);
  const int64_t last = settings.iterations.value() - 1;
  Numbers numbers;
  for (int64_t step = 0, snapshot = 0; step <= last; ++step) {
    progress(step);
    const bool due = step == snapshot * last / (kFieldSnapshots - 1);
    std::map<std::string, Cost> costs;
    uint32_t number = 0;
    training.step(step, [&](const std::string& name, const Tensor& gradient) {
      const uint32_t tensor = number++;
      for (const char* preset : kFieldPresets)
        for (const char* align : kAligns)
          for (int64_t draw = 0; due && draw < draws; ++draw) {
            const GradientTag tag = {name,
                                     {.seed = static_cast<uint64_t>(settings.seed),
                                      .purpose = Purpose::codec,
                                      .owner = static_cast<uint32_t>(draw),
                                      .step = static_cast<uint32_t>(step),
                                      .tensor = tensor}};
            add_cost(spec_of(preset, align), tag, gradient, costs[spec_of(preset, align)]);
          }
    });
    if (!due) continue;
    ++snapshot;
    numbers["step"].push_back(static_cast<double>(step + 1));
    for (const auto& [spec, cost] : costs) {
      numbers[spec + " bits"].push_back(cost.bits / cost.elements);
      numbers[spec + " variance"].push_back(cost.errors / cost.squares);
    }
  }
  return numbers;
}

/// What buckets along whole receptive fields (QSGD, section 5) cost and gain on ResNet-20.
class QsgdFields final : public Experiment {
 public:
  explicit QsgdFields(const ExperimentOptions& options)
      : data_(choose_data("qsgd-fields", options, {"cifar10", "shapes"})),
        iterations_(options.iterations.value_or(options.quick ? 20 : 400)),
        draws_(options.quick ? 3 : 20) {
    check_input(options.workers.empty(), "--workers would change nothing: the gradients of one worker are coded");
    check_input(!options.seeds, "--seeds would change nothing: one run is looked at");
    check_input(iterations_ >= kFieldSnapshots, "--iterations: found ", iterations_, ", expected ", kFieldSnapshots,
                " or more");
  }

  std::vector<Run> runs() const override {
    Run run = {.name = kFieldRun,
               .flags = {"--data", data_.name, "--depth", "20", "--iterations", std::to_string(iterations_)},
               .places = data_.places(),
               .steps = iterations_};
    run.study = [settings = settings_of(networks::resnet(), run), draws = draws_](const StudyProgress& progress) {
      return observe(settings, draws, progress);
    };
    run.flags.push_back(fmt::format("draws={}", draws_));
    return {run};
  }

  Report report(const Results& results) const override {
    std::string text = fmt::format(
        "ResNet-20 is trained on {} with floats, by `train_resnet`'s recipe. In the first, the middle and the last of "
        "{} steps, tern's codec codes the gradient of every filter bank and matrix {} times. With `align=none` a "
        "bucket is that many consecutive values. With `align=field` it has whole receptive fields: all weights of an "
        "output unit. It has as many as fit, at least one. ResNet-20's fields have 27 to 576 weights, so a bucket of "
        "128 becomes up to 4.5 times as long. Bits are for one element, scales included. The variance is ‖Q(g) − g‖² "
        "/ ‖g‖². The paper prints no number for this.\n",
        data_.name == "cifar10" ? "CIFAR-10" : "generated shapes, **not on the paper's CIFAR-10**", iterations_,
        draws_);
    const auto found = results.find(kFieldRun);
    if (found == results.end()) return {.text = text, .figures = {}};
    return {.text = text + '\n' + table(found->second.numbers), .figures = {}};
  }

 private:
  static std::string table(const Numbers& numbers) {
    std::vector<std::vector<std::string>> rows = {{"codec", "align", "bits an element"}};
    for (const double step : numbers.at("step")) rows[0].push_back(fmt::format("variance, step {}", step));
    for (const char* preset : kFieldPresets)
      for (const char* align : kAligns) {
        const std::string spec = spec_of(preset, align);
        rows.push_back({fmt::format("`{}`", preset), align, fmt::format("{:.4f}", numbers.at(spec + " bits").front())});
        for (const double variance : numbers.at(spec + " variance"))
          rows.back().push_back(fmt::format("{:.4g}", variance));
      }
    return markdown_table(rows);
  }

  DataChoice data_;
  int64_t iterations_, draws_;
};

}  // namespace

ExperimentEntry qsgd_fields() {
  return {.name = "qsgd-fields",
          .title = "QSGD, section 5: buckets of whole receptive fields, on the gradients of ResNet-20",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "a few minutes on 2 cores; with --quick less than one",
          .make = make_experiment<QsgdFields>};
}

}  // namespace tern::reproduce
