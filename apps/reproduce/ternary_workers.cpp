#include "tern/apps/reproduce/ternary_workers.h"

#include <algorithm>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/kernels/layout.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/run/recipe.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// Makes a ternary codec with one scaler per tensor; only such codes can be summed with a shared scaler.
std::unique_ptr<GradientCodec> make_summable(const std::string& spec) {
  auto codec = make_codec(spec);
  check_input(codec->scaled() != nullptr && codec->scaled()->levels() == 1 && codec->scaled()->bucket() == 0,
              "--codec: found ", spec, ", expected ternary codes of whole tensors");
  return codec;
}

Tensor row_major_copy(const Tensor& tensor) {
  Tensor copy = Tensor::empty(tensor.shape());
  kernels::convert(tensor, copy);
  return copy;
}

}  // namespace

TernaryWorkers::TernaryWorkers(const Application& application, const TrainSettings& settings)
    : settings_(settings),
      task_(trainer::task_of(settings)),
      data_(load_run_data(settings)),
      model_(make_model(application, settings)),
      parameters_(model_->parameters()),
      optimizer_(make_optimizer(settings, *model_)),
      schedule_(make_schedule(settings, settings.iterations.value())),
      codec_(make_summable(settings.codec)),
      test_loader_(make_test_loader(settings, *data_.test, Team(nullptr))) {
  if (settings.ema_decay > 0) average_ = std::make_unique<ParameterAverage>(parameters_, settings.ema_decay);
  const int workers = static_cast<int>(settings.workers.value());
  const auto seed = static_cast<uint64_t>(settings.seed);
  for (int rank = 0; rank < workers; ++rank)
    loaders_.push_back(std::make_unique<DataLoader>(
        *data_.training,
        Sampler{.size = data_.training->size(), .shuffle = true, .seed = seed, .rank = rank, .ranks = workers},
        LoaderOptions{.batch_size = samples_per_rank(settings, workers),
                      .seed = seed,
                      .transform = transform_for(settings, *data_.training)}));
}

double TernaryWorkers::backward(size_t worker) {
  const auto batch = loaders_[worker]->next().value();
  model_->begin_step({.seed = static_cast<uint64_t>(settings_.seed),
                      .step = static_cast<uint32_t>(steps_),
                      .samples = batch.indices()});
  optimizer_->zero_gradients();
  const Variable loss = task_->forward(*model_, DeviceBatch(batch, batch, DType::f32)).loss;
  const double value = loss.value().item();
  check_input(std::isfinite(value), "training diverged at step ", steps_ + 1, ": the loss is ", value);
  loss.backward();
  return value;
}

std::vector<Tensor> TernaryWorkers::gradients() {
  std::vector<Tensor> all;
  for (const auto& [name, parameter] : parameters_) all.push_back(row_major_copy(parameter->gradient()));
  return all;
}

GradientStages TernaryWorkers::code(size_t parameter, const std::vector<std::vector<Tensor>>& gradients) const {
  const ScaledCodec& codec = *codec_->scaled();
  const auto tag = [&](size_t worker) {
    return GradientTag{.name = parameters_[parameter].name,
                       .key = {.seed = static_cast<uint64_t>(settings_.seed),
                               .purpose = Purpose::codec,
                               .owner = static_cast<uint32_t>(worker),
                               .step = static_cast<uint32_t>(steps_),
                               .tensor = static_cast<uint32_t>(parameter)}};
  };
  std::vector<float> own;
  for (size_t worker = 0; worker < gradients.size(); ++worker)
    own.push_back(codec.scalers(tag(worker), gradients[worker][parameter]).item());
  const float shared = *std::ranges::max_element(own);

  const Tensor one = Tensor::full({1}, 1), scaler = Tensor::full({1}, shared);
  const Tensor& first = gradients.front()[parameter];
  GradientStages stages = {.original = first,
                           .clipped = first.clone(),
                           .ternary = Tensor::full(first.shape(), 0),
                           .averaged = Tensor::full(first.shape(), 0),
                           .scaler = shared};
  for (float& x : stages.clipped.span<float>()) x = std::clamp(x, -shared, shared);
  for (size_t worker = 0; worker < gradients.size(); ++worker) {
    std::vector<std::byte> codes;
    codec.append_codes(tag(worker), gradients[worker][parameter], scaler, codes);
    if (worker == 0) codec.add_codes(codes, scaler, stages.ternary);
    codec.add_codes(codes, one, stages.averaged);
  }
  const auto workers = static_cast<float>(gradients.size());
  for (float& x : stages.averaged.span<float>()) x = x * shared * (1 / workers);
  return stages;
}

double TernaryWorkers::step(const Observer& observe) {
  const int64_t epoch = steps_ / steps_per_epoch(), batch = steps_ % steps_per_epoch();
  if (batch == 0)
    for (const auto& loader : loaders_) loader->start({.epoch = epoch});
  double loss = 0;
  std::vector<std::vector<Tensor>> all;
  for (size_t worker = 0; worker < loaders_.size(); ++worker) {
    loss += backward(worker) / static_cast<double>(loaders_.size());
    all.push_back(gradients());
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const GradientStages stages = code(i, all);
    observe(parameters_[i].name, stages);
    parameters_[i].parameter->set_gradient(stages.averaged);
  }
  optimizer_->set_learning_rate(schedule_(steps_));
  optimizer_->step();
  if (average_) average_->update();
  ++steps_;
  return loss;
}

Evaluation TernaryWorkers::evaluate() {
  if (average_) average_->swap();
  const auto whole =
      trainer::evaluate(*model_, *task_, *test_loader_, {}, join({"after step ", steps_}), [] { return false; });
  if (average_) average_->swap();
  return whole.value();
}

}  // namespace tern::reproduce
