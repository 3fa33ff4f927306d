#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tern/kernels/libraries.h"
#include "tern/kernels/operation_clock.h"
#include "tern/kernels/recording.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/lenet.h"
#include "tern/networks/resnet.h"
#include "tern/optim/sgd.h"
#include "tern/trainer/image_classification.h"
#include "tern/trainer/run/batch_feed.h"
#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

/// Counts the launches of each operation while a graph is captured.
class LaunchCounter final : public OperationClock {
 public:
  void begin(const char* name) override {
    const size_t captured = emulation::captured_launches();
    if (captured > before_) launches_[name_] += captured - before_;
    before_ = captured;
    name_ = name == nullptr ? "" : name;
  }
  const std::map<std::string, size_t>& launches() const { return launches_; }

 private:
  std::string name_;
  size_t before_ = 0;
  std::map<std::string, size_t> launches_;
};

/// A network, and the launches of a training step with SGD in f32 and in bf16. A launch is a kernel of tern's own,
/// or a call of a vendor's library. The numbers do not depend on the batch.
struct LaunchCase {
  std::string name;
  std::function<std::unique_ptr<Layer>()> make;
  ImageSpec images;
  size_t f32, bf16;
};
template <class Model>
std::function<std::unique_ptr<Layer>()> maker(const typename Model::Options& options) {
  return [=] { return std::make_unique<Model>(options); };
}
const LaunchCase kLaunchCases[] = {
    {"lenet", maker<networks::CaffeLeNet>({}), {1, 28, 28, 10}, 23, 28},
    {"cifarnet", maker<networks::CifarNet>({}), {3, 24, 24, 10}, 32, 37},
    {"resnet20", maker<networks::ResNet>({.depth = 20}), {3, 8, 8, 10}, 151, 152},
};

/// Records the step that tests/gpu/steps.cpp measures. Returns the launches of each operation.
std::map<std::string, size_t> launches_of_step(const LaunchCase& network, DType dtype) {
  constexpr int64_t kBatch = 2;
  kernels::set_library_rules(kGpu, {.deterministic = true});
  const Tensor images = Tensor::full({kBatch, network.images.channels, network.images.height, network.images.width},
                                     0.5, {.device = kGpu, .format = trainer::image_format(kGpu, dtype)}),
               labels = Tensor::zeros({kBatch}, {.dtype = DType::i64, .device = kGpu});
  const DeviceBatch batch({labels, {{"image", images}, {"label", labels}}}, {}, dtype);
  const auto model = network.make();
  model->initialize(1, DType::f32, kGpu);
  Sgd optimizer(model->parameters(), {.lr = 0.001, .momentum = 0.9});
  const Tensor one = Tensor::full({}, 1, {.device = kGpu});
  Tensor loss;
  const auto step = [&] {
    model->begin_step({.seed = 1, .step = 1, .samples = batch.indices()});
    const Forward pass = ImageClassification().forward(*model, batch);
    pass.loss.backward(one);
    optimizer.issue_step();
    loss = pass.loss.value();
  };
  optimizer.begin_step();
  for (int64_t before = 0; before < 2; ++before) {  // the first finds out what the second has copies of
    step();
    model->zero_gradients();
  }
  model->begin_step({.seed = 1, .step = 1, .samples = batch.indices()});  // copies what the update has not written
  LaunchCounter counter;
  const auto recording = record(kGpu, [&] {
    const OperationTiming timing(&counter);
    step();
  });
  return counter.launches();
}

TEST(CudaLaunches, OfATrainingStepAreFew) {
  for (const LaunchCase& network : kLaunchCases)
    for (const DType dtype : {DType::f32, DType::bf16}) {
      size_t total = 0;
      std::string table;
      for (const auto& [operation, launches] : launches_of_step(network, dtype)) {
        total += launches;
        table += fmt::format("  {:<28} {:>4}\n", operation, launches);
      }
      fmt::print("{} {}: {} launches\n{}", network.name, to_string(dtype), total, table);
      EXPECT_EQ(total, dtype == DType::f32 ? network.f32 : network.bf16) << "docs/gpu.md has this number";
    }
}

/// Copies of one kind, and their bytes.
struct Copied {
  int64_t copies = 0, bytes = 0;
  friend bool operator==(const Copied&, const Copied&) = default;
};
/// Copies to the device, to the host, and within the device.
struct AllCopied {
  Copied to_device, to_host, within;
  friend bool operator==(const AllCopied&, const AllCopied&) = default;
  friend void PrintTo(const AllCopied& all, std::ostream* out) {
    for (const auto& [copies, bytes] : {all.to_device, all.to_host, all.within})
      *out << copies << " copies of " << bytes << " bytes; ";
  }
};

class CudaCopies : public TrainLenet {
 protected:
  static constexpr int64_t kSamples = 8;  // of a step; 8 numbers of 64 bits fill an aligned place

  /// The copies of two recorded steps, on the two batches of a feed, of a training with these flags too.
  AllCopied of_two_steps(const std::vector<std::string>& flags) const {
    constexpr int64_t kFew = 6, kMany = 8;  // steps of one epoch; those before are not recorded
    const AllCopied few = of_a_run(kFew, flags), many = of_a_run(kMany, flags);
    const auto more = [](const Copied& less, const Copied& all) {
      return Copied{all.copies - less.copies, all.bytes - less.bytes};
    };
    return {more(few.to_device, many.to_device), more(few.to_host, many.to_host), more(few.within, many.within)};
  }

 private:
  AllCopied of_a_run(int64_t steps, std::vector<std::string> flags) const {
    flags.insert(flags.end(), {"--device", "cuda", "--deterministic", "--batch-size", std::to_string(kSamples),
                               "--iterations", std::to_string(steps)});
    ::setenv("TERN_EMULATED_COPIES", place("copies").c_str(), 1);
    const Outcome outcome = run(flags);
    ::unsetenv("TERN_EMULATED_COPIES");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    AllCopied found;
    std::ifstream file(place("copies"));
    for (Copied* kind : {&found.to_device, &found.to_host, &found.within}) file >> kind->copies >> kind->bytes;
    return found;
  }
};

// The images are on the device. Of each sample, its number, its label and ten draws of its transform go there together.
// The loss comes back; with a log the gradients' norm too, and with a plot the sample's ten outputs. The later
// recording copies these results out of the memory that both use.
TEST_F(CudaCopies, OfRecordedStepsAreFew) {
  constexpr int64_t kLoss = sizeof(float), kAll = kLoss + sizeof(double) + kSamples * 10 * sizeof(float);
  const Copied to_device{2, 2 * kSamples * (2 * sizeof(int64_t) + 10 * sizeof(double))};
  EXPECT_EQ(of_two_steps({}), (AllCopied{to_device, {2, 2 * kLoss}, {1, kLoss}}));
  EXPECT_EQ(of_two_steps({"--plot", place("plot.svg"), "--log", place("log")}),
            (AllCopied{to_device, {6, 2 * kAll}, {3, kAll}}));
  // A launch keeps loss and norm, in one of three rows of two numbers, which come back together.
  EXPECT_EQ(of_two_steps({"--log", place("log"), "--log-every", "2"}),
            (AllCopied{to_device, {1, 3 * 2 * sizeof(double)}, {0, 0}}));
}

}  // namespace
}  // namespace tern
