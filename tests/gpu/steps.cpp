#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/apps/models/alexnet.h"
#include "tern/apps/models/cifarnet.h"
#include "tern/apps/models/lenet.h"
#include "tern/apps/models/resnet.h"
#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/step_graph.h"
#include "tern/autograd/layout.h"
#include "tern/autograd/loss.h"
#include "tern/kernels/library_rules.h"
#include "tern/optim/sgd.h"

// Whole training steps on random images that lie on the device, loss and answers read back: as a CUDA graph, and
// operation by operation. torch_steps.py does the same with PyTorch.

namespace tern {
namespace {

constexpr Device kCuda{DeviceType::cuda, 0};

struct StepCase {
  const char* name;
  int64_t batch;
  ImageSpec images;
  std::function<std::unique_ptr<Module>()> make;
};
template <class Model>
std::function<std::unique_ptr<Module>()> maker(const typename Model::Options& options) {
  return [=] { return std::make_unique<Model>(options); };
}
const StepCase kStepCases[] = {
    {"LeNet (Caffe)", 128, {1, 28, 28, 10}, [] { return std::make_unique<models::CaffeLeNet>(); }},
    {"CifarNet", 128, {3, 24, 24, 10}, maker<models::CifarNet>({})},
    {"ResNet-20", 128, {3, 32, 32, 10}, maker<models::ResNet>({.depth = 20})},
    {"ResNet-18 (CIFAR)", 512, {3, 32, 32, 10}, maker<models::ResNet>({.depth = 18})},
    {"AlexNet", 256, {3, 224, 224, 1000}, maker<models::AlexNet>({})},
};
const std::pair<const char*, DType> kPrecisions[] = {{"fp32", DType::f32}, {"tf32", DType::f32}, {"bf16", DType::bf16}};

FedBatch random_batch(const StepCase& step) {
  const RandomStream random({.seed = 7, .purpose = Purpose::test});
  const Tensor images = Tensor::empty({step.batch, step.images.channels, step.images.height, step.images.width},
                                      {.format = MemoryFormat::channels_last});
  const Tensor labels = Tensor::empty({step.batch}, {.dtype = DType::i64});
  for (size_t i = 0; i < images.span<float>().size(); ++i) images.span<float>()[i] = random.normal(i);
  for (int64_t i = 0; i < step.batch; ++i) labels.data<int64_t>()[i] = i % step.images.classes;
  return {images.to(kCuda), labels.to(kCuda), labels.to(kCuda), labels};
}

/// The median over five windows of about 0.2 s.
double milliseconds(const std::function<void()>& step) {
  DeviceBackend& backend = device_backend(kCuda);
  const auto seconds_of = [&](int64_t steps) {
    backend.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i) step();
    backend.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds_of(10);
  const auto steps = std::max<int64_t>(5, static_cast<int64_t>(0.2 / (seconds_of(5) / 5)));
  std::vector<double> windows;
  for (int i = 0; i < 5; ++i) windows.push_back(1e3 * seconds_of(steps) / static_cast<double>(steps));
  std::ranges::sort(windows);
  return windows[windows.size() / 2];
}

double time_steps(const StepCase& step, DType dtype, bool as_graph) {
  const auto model = step.make();
  model->initialize(1, DType::f32, kCuda);
  Sgd optimizer(model->parameters(), {.lr = 0.001, .momentum = 0.9});
  const FedBatch batch = random_batch(step);
  uint32_t number = 0;
  const auto issue = [&](const FedBatch& fed) {
    model->begin_step({.seed = 1, .step = number, .samples = fed.indices});
    const Variable logits = (*model)(convert(Variable(fed.images), dtype));
    const Variable loss = cross_entropy(logits, fed.labels);
    loss.backward();
    optimizer.issue_step();
    return StepOutput{loss.value(), logits.value()};
  };
  StepGraph graph(*model, issue);
  StepOutputs outputs(kCuda);
  StepOutputs::Arrival before;
  return milliseconds([&] {
    optimizer.zero_gradients();
    optimizer.begin_step();
    auto arrival = outputs.bring(as_graph && graph.takes(batch) ? graph.run(batch, number) : issue(batch));
    if (before) before();
    before = std::move(arrival);
    ++number;
  });
}

void print_table() {
  fmt::print("{:<20} {:>6} {:>6} {:>12} {:>12} {:>14}\n", "model", "batch", "", "graph ms", "one by one", "images/s");
  for (const StepCase& step : kStepCases)
    for (const auto& [precision, dtype] : kPrecisions) {
      kernels::set_library_rules(kCuda, {.tf32 = std::string_view(precision) == "tf32"});
      const double apart = time_steps(step, dtype, false), graph = time_steps(step, dtype, true);
      fmt::print("{:<20} {:>6} {:>6} {:>12.4f} {:>12.4f} {:>14.0f}\n", step.name, step.batch, precision, graph, apart,
                 1e3 * static_cast<double>(step.batch) / graph);
    }
}

}  // namespace
}  // namespace tern

int main() {
  return tern::run_application("steps", [] {
    fmt::print("{}\n", tern::device_backend(tern::kCuda).name());
    tern::print_table();
    return 0;
  });
}
