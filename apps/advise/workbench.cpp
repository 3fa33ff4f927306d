#include "tern/apps/advise/workbench.h"

#include <algorithm>
#include <chrono>

#include "tern/apps/advise/measure.h"
#include "tern/autograd/functional.h"
#include "tern/core/stopwatch.h"
#include "tern/data/loader.h"
#include "tern/dist/cost/round_time.h"
#include "tern/dist/cost/subnet_round.h"
#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/demo.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/kernels/elementwise.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/recipe.h"

namespace tern::advise {
namespace {

using namespace trainer;

/// The shape of the images that the network gets.
ImageSpec images_of(const TrainSettings& settings) {
  const ImageSpec images = describe_dataset(settings).spec;
  return training_transform(settings, images).output(images);
}

/// A data set of equal images with random pixels.
class Noise final : public ImageDataset {
 public:
  Noise(const ImageSpec& spec, int64_t size) : spec_(spec), size_(size), pixels_(static_cast<size_t>(spec.numel())) {
    const RandomStream random({.seed = 1, .purpose = Purpose::initialize});
    for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<uint8_t>(random.word(i));
  }
  int64_t size() const override { return size_; }
  ImageSpec spec() const override { return spec_; }
  int64_t read(int64_t index, std::span<uint8_t> pixels) const override {
    std::ranges::copy(pixels_, pixels.begin());
    return index % spec_.classes;
  }

 private:
  ImageSpec spec_;
  int64_t size_;
  std::vector<uint8_t> pixels_;
};

/// There is nothing to learn from noise, so the learning rates are so small that nothing diverges.
std::unique_ptr<Optimizer> make_slow_optimizer(const TrainSettings& settings, Module& model) {
  auto optimizer = make_optimizer(settings, model);
  optimizer->set_learning_rate(1e-3 * settings.lr);
  return optimizer;
}

std::unique_ptr<DistributedOptimizer> train_alone(Module& model, Optimizer& optimizer, Communicator&) {
  return std::make_unique<DistributedOptimizer>(model, optimizer);
}

SubnetPlan plan_of(Module& model, SubnetScope scope) { return dynamic_cast<SubnetModel&>(model).subnet_plan(scope); }

/// Seconds since a begin, for each parameter: the last time that its gradient was complete.
class ReadyTimes {
 public:
  explicit ReadyTimes(const std::vector<NamedParameter>& parameters)
      : parameters_(parameters), seconds_(parameters.size()) {
    for (size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].parameter->on_gradient_ready([this, i] {
        seconds_[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
      });
  }
  ~ReadyTimes() {
    for (const auto& [name, parameter] : parameters_) parameter->on_gradient_ready({});
  }
  ReadyTimes(const ReadyTimes&) = delete;
  ReadyTimes& operator=(const ReadyTimes&) = delete;

  void begin() { begin_ = std::chrono::steady_clock::now(); }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<double> seconds_;
  std::chrono::steady_clock::time_point begin_;
};

/// Replaces the model's tensors by ones of the shapes of rank 0's subnet.
void narrow(Module& model, int workers, SubnetScope scope) {
  const SubnetCuts cuts(plan_of(model, scope), model);
  const SubnetParts parts = draw_subnets(cuts, workers, 1, 0);
  const auto narrowed = [&](const std::string& name, const Tensor& tensor) {
    const TensorCut* const cut = cuts.find(name);
    return cut ? Tensor::full(subnet_shape(*cut, tensor.shape(), parts, 0), 0.01) : tensor;
  };
  for (const auto& [name, parameter] : model.parameters()) parameter->set_value(narrowed(name, parameter->value()));
  for (const auto& [name, buffer] : model.buffers()) *buffer = narrowed(name, *buffer);
}

}  // namespace

Workbench::Workbench(const networks::Variant& variant, const Options& options)
    : application_(variant.network.application()),
      settings_(variant.settings()),
      options_(options),
      noise_(std::make_unique<Noise>(images_of(settings_), kMostMeasured * options.images * options.ranks)) {
  for (int rank = 0; rank < options.ranks; ++rank) models_.push_back(initialized());
}

std::unique_ptr<Module> Workbench::initialized() const { return make_model(application_, settings_); }

double Workbench::step_seconds() { return train_together({}, 3 * options_.seconds).compute; }

std::vector<double> Workbench::ready_seconds() { return train_together({}, options_.seconds).ready; }

double Workbench::subnet_step_seconds(int workers, SubnetScope scope) {
  std::vector<std::unique_ptr<Module>> subnets;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    subnets.push_back(initialized());
    narrow(*subnets.back(), workers, scope);
  }
  return train(subnets, settings_, train_alone, options_.seconds).compute;
}

Workbench::StepTimes Workbench::train(const std::vector<std::unique_ptr<Module>>& models, const TrainSettings& settings,
                                      const MakeMethod& make_method, double budget) const {
  StepTimes result;
  side_by_side(options_.ranks, options_.threads, [&](Communicator& c) {
    Module& mine = *models[static_cast<size_t>(c.rank())];
    const auto optimizer = make_slow_optimizer(settings, mine);
    const auto task = task_of(settings);
    DataLoader loader(*noise_, {.size = noise_->size(), .shuffle = true, .rank = c.rank(), .ranks = c.size()},
                      {.batch_size = options_.images});
    loader.start({});
    const auto method = make_method(mine, *optimizer, c);
    ReadyTimes ready(mine.trained_parameters());
    int64_t step = 0;
    const auto times = measure(c, budget, [&]() -> std::vector<double> {
      const ExchangeTimes before = method->times();
      ready.begin();
      const double seconds = seconds_of([&] {
        const auto batch = loader.next();
        method->begin_step(step);
        mine.begin_step({.seed = 1, .step = static_cast<uint32_t>(step++), .samples = batch->indices()});
        optimizer->zero_gradients();
        const Forward pass = task->forward(mine, DeviceBatch(*batch, *batch, DType::f32));
        count_scores(*task, pass.values(), *batch);
        pass.loss.backward();
        method->step();
      });
      const ExchangeTimes spent = method->times() - before;
      std::vector<double> found = {seconds - spent.total(), spent.encode, spent.decode};
      found.insert(found.end(), ready.seconds().begin(), ready.seconds().end());
      return found;
    });
    if (c.rank() == 0) result = {times[0], times[1], times[2], {times.begin() + 3, times.end()}};
  });
  return result;
}

double Workbench::change_seconds() {
  double result = 0;
  side_by_side(options_.ranks, options_.threads, [&](Communicator& c) {
    const auto parameters = models_[static_cast<size_t>(c.rank())]->trained_parameters();
    const double seconds = measure_seconds(c, options_.seconds, [&] {
      std::vector<Tensor> kept;
      for (const auto& [name, parameter] : parameters) kept.push_back(parameter->value().clone());
      for (int pass = 0; pass < 2; ++pass)
        for (size_t i = 0; i < kept.size(); ++i) {
          Tensor change = Tensor::empty_like(kept[i]);
          kernels::subtract(kept[i], parameters[i].parameter->value(), change);
        }
    });
    if (c.rank() == 0) result = seconds;
  });
  return result;
}

Workbench::StepTimes Workbench::train_together(const AveragingOptions& averaging, double budget) const {
  const auto together = [&](Module& model, Optimizer& optimizer, Communicator& c) {
    return std::make_unique<DataParallel>(model, optimizer, c,
                                          DataParallel::Options{.averaging = averaging, .check_every = 0});
  };
  return train(models_, settings_, together, budget);
}

CodecCost Workbench::codec(const std::string& codec, const std::string& exchange) {
  return cost_of(train_together({.codec = codec, .exchange = exchange}, options_.seconds), codec, exchange);
}

Workbench::DeMoStep Workbench::demo() {
  const DeMo::Options options = {.check_every = 0};
  TrainSettings settings = settings_;
  settings.optimizer = UpdateRule::sgd;
  settings.group.clear();
  settings.clip_norm = 0;
  const auto make_demo = [&](Module& model, Optimizer& optimizer, Communicator& c) {
    return std::make_unique<DeMo>(model, optimizer, c, options);
  };
  const StepTimes times = train(models_, settings, make_demo, options_.seconds);
  const AveragingOptions averaging = DeMo::averaging(options);
  return {times.compute, cost_of(times, averaging.codec, averaging.exchange)};
}

CodecCost Workbench::cost_of(const StepTimes& times, const std::string& codec, const std::string& exchange) const {
  const auto coder = make_codec(codec);
  std::vector<Shape> shapes;
  for (const auto& [name, parameter] : models_.front()->trained_parameters())
    shapes.push_back(parameter->value().shape());
  const ExchangePlan plan = plan_exchange(exchange, *coder, coded_tensors(*coder, shapes), options_.ranks);
  return {times.encode / plan.encoded(), times.decode / plan.decoded()};
}

CodecCost Workbench::slicing(SubnetScope scope) {
  constexpr int kRanks = 2;
  CodecCost cost;
  side_by_side(kRanks, options_.threads, [&](Communicator& c) {
    const auto mine = initialized();
    const auto optimizer = make_slow_optimizer(settings_, *mine);
    IndependentSubnets subnets(*mine, *optimizer, c, plan_of(*mine, scope),
                               {.local_steps = 1, .exchange = SubnetExchange::coordinator, .check_every = 0});
    int64_t step = 0;
    const auto times = measure(c, options_.seconds, [&]() -> std::vector<double> {
      const ExchangeTimes before = subnets.times();
      subnets.begin_step(step++);
      for (const auto& [name, parameter] : mine->parameters())
        parameter->set_gradient(Tensor::zeros(parameter->value().shape()));
      subnets.step();
      const ExchangeTimes spent = subnets.times() - before;
      return {spent.encode, spent.decode};
    });
    if (c.rank() == 0) cost = {times[0], times[1]};
  });
  const auto whole = initialized();
  const SubnetCuts cuts(plan_of(*whole, scope), *whole);
  const ExchangePlan plan = plan_subnet_round(cuts, whole->state(), {}, {SubnetExchange::coordinator, kRanks});
  return {cost.encode / plan.phases[0].encoded, cost.decode / plan.phases[1].decoded};
}

}  // namespace tern::advise
