#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/kernels/libraries.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/lenet.h"
#include "tern/networks/resnet.h"
#include "tern/optim/sgd.h"
#include "tern/trainer/application.h"
#include "tern/trainer/image_classification.h"
#include "tern/trainer/run/step_graph.h"

// Measures whole training steps on random images that are on the device, in the form in which training feeds them. The
// loss and the answers are read back. A step runs as a CUDA graph, and operation by operation. usage: steps
// [NETWORK...]. torch_steps.py does the same with PyTorch and prints the same columns.

namespace tern {
namespace {

using namespace trainer;

constexpr Device kCuda{DeviceType::cuda, 0};

struct StepCase {
  std::string_view name;
  int64_t batch;
  ImageSpec images;
  std::function<std::unique_ptr<Layer>()> make;
};
template <class Model>
std::function<std::unique_ptr<Layer>()> maker(const typename Model::Options& options) {
  return [=] { return std::make_unique<Model>(options); };
}
const StepCase kStepCases[] = {
    {"lenet", 64, {1, 28, 28, 10}, maker<networks::CaffeLeNet>({})},
    {"cifarnet", 64, {3, 24, 24, 10}, maker<networks::CifarNet>({})},
    {"resnet20", 128, {3, 32, 32, 10}, maker<networks::ResNet>({.depth = 20})},
    {"resnet18", 512, {3, 32, 32, 10}, maker<networks::ResNet>({.depth = 18})},
    {"alexnet", 256, {3, 224, 224, 1000}, maker<networks::AlexNet>({})},
};
const std::pair<std::string_view, DType> kPrecisions[] = {
    {"fp32", DType::f32}, {"tf32", DType::f32}, {"bf16", DType::bf16}};

/// Images on the CPU: f32, channels-last.
Tensor random_images(const StepCase& step) {
  const RandomStream random({.seed = 7, .purpose = Purpose::test});
  const Tensor images = Tensor::empty({step.batch, step.images.channels, step.images.height, step.images.width},
                                      {.format = MemoryFormat::channels_last});
  for (size_t i = 0; i < images.span<float>().size(); ++i) images.span<float>()[i] = random.normal(i);
  return images;
}

/// A batch of these images as training feeds them: in the dtype and format of activations, with spare channels that are
/// 0.
Batch fed(const StepCase& step, const Tensor& images, DType dtype, int64_t channel_multiple) {
  const int64_t own = step.images.channels, all = (own + channel_multiple - 1) / channel_multiple * channel_multiple;
  const Tensor wide =
      Tensor::zeros({step.batch, all, step.images.height, step.images.width}, {.format = MemoryFormat::channels_last});
  for (int64_t pixel = 0; pixel < images.numel() / own; ++pixel)
    std::copy_n(images.data<float>() + pixel * own, own, wide.data<float>() + pixel * all);
  const Tensor labels = Tensor::empty({step.batch}, {.dtype = DType::i64});
  for (int64_t i = 0; i < step.batch; ++i) labels.data<int64_t>()[i] = i % step.images.classes;
  return {labels.to(kCuda),
          {{"image", wide.to(dtype).to(image_format(kCuda, dtype)).to(kCuda)}, {"label", labels.to(kCuda)}}};
}

/// The median of five measurements of about 0.2 s each.
double median_milliseconds(const std::function<void()>& step) {
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

struct StepTime {
  double milliseconds;
  size_t launches;  // of a recorded step
};

/// The steps take the two batches in turn, as those of a training do.
StepTime time_steps(const StepCase& step, const std::array<Batch, 2>& batches, DType dtype, bool as_graph) {
  const auto model = step.make();
  model->initialize(1, DType::f32, kCuda);
  Sgd optimizer(model->parameters(), {.lr = 0.001, .momentum = 0.9});
  uint32_t number = 0;
  const ImageClassification task;
  const Tensor one = Tensor::full({}, 1, {.device = kCuda});
  const auto issue = [&](const DeviceBatch& fed) {
    model->begin_step({.seed = 1, .step = number, .samples = fed.indices()});
    const Forward pass = task.forward(*model, fed);
    pass.loss.backward(one);
    optimizer.issue_step();
    return StepOutput{pass.loss.value(), pass.values()};
  };
  StepGraph graph(*model, issue);
  StepOutputs outputs(kCuda);
  StepOutputs::Arrival before;
  const double milliseconds = median_milliseconds([&] {
    optimizer.zero_gradients();
    optimizer.begin_step();
    const DeviceBatch batch(batches[number % 2], {}, dtype);
    auto arrival = outputs.bring(as_graph && graph.takes(batch) ? graph.run(batch, number) : issue(batch));
    if (before) before();
    before = std::move(arrival);
    ++number;
  });
  return {milliseconds, graph.launches()};
}

/// Prints a row for each precision and way. A way that fails gets a line that says why, and false is returned.
bool print_steps(const StepCase& step) {
  const Tensor images = random_images(step);
  bool ran = true;
  for (const auto& [precision, dtype] : kPrecisions) {
    kernels::set_library_rules(kCuda, {.tf32 = precision == "tf32"});
    const int64_t multiple = image_channel_multiple(*step.make(), dtype);
    const std::array batches{fed(step, images, dtype, multiple), fed(step, images, dtype, multiple)};
    for (const auto& [way, as_graph] : {std::pair{"tern-graph", true}, std::pair{"tern-one-by-one", false}}) try {
        const StepTime time = time_steps(step, batches, dtype, as_graph);
        fmt::print("{:<10} {:>5} {:<5} {:<15} {:>10.4f} {:>10.0f} {:>9}\n", step.name, step.batch, precision, way,
                   time.milliseconds, 1e3 * static_cast<double>(step.batch) / time.milliseconds,
                   as_graph ? std::to_string(time.launches) : "");
      } catch (const Error& error) {
        fmt::print("# {} {} {}: failed: {}\n", step.name, precision, way, error.what());
        ran = false;
      }
  }
  return ran;
}

std::vector<const StepCase*> cases_named(std::span<char* const> names) {
  std::vector<const StepCase*> chosen;
  for (const StepCase& step : kStepCases)
    if (names.empty() || std::ranges::count(names, step.name)) chosen.push_back(&step);
  check_input(names.empty() || chosen.size() == names.size(),
              "found a network that is none of lenet, cifarnet, resnet20, resnet18, alexnet, each once");
  return chosen;
}

}  // namespace
}  // namespace tern

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // prints each row at once, into a pipe too
  return tern::run_application("steps", [&] {
    const auto cases = tern::cases_named(std::span(argv, static_cast<size_t>(argc)).subspan(1));
    fmt::print("# {}\n", tern::device_backend(tern::kCuda).name());
    fmt::print("# {:<8} {:>5} {:<5} {:<15} {:>10} {:>10} {:>9}\n", "network", "batch", "math", "way", "ms", "images/s",
               "launches");
    bool ran = true;
    for (const tern::StepCase* step : cases) ran = tern::print_steps(*step) && ran;
    return ran ? 0 : 1;
  });
}
