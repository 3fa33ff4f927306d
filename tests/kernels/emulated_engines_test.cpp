#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "tern/kernels/convolution.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/recording.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/parity.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/values.h"

// Tests which of cuDNN's engines a convolution takes. In this emulated cuDNN, engines fail, lack memory or are slow.

namespace tern {
namespace {

using emulation::DnnEngine;
using enum DnnEngine::Fate;

constexpr int64_t kHuge = int64_t{1} << 29;  // bytes: more than the tests leave free, but less than an engine may take

class CudaEngines : public testing::Test {
 protected:
  CudaEngines() {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    setenv("TERN_EMULATED_MEMORY", std::to_string(total - free + (size_t{64} << 20)).c_str(), 1);
    setenv("TERN_CACHE", folder_.path().c_str(), 1);
  }
  ~CudaEngines() override {
    unsetenv("TERN_EMULATED_MEMORY");
    unsetenv("TERN_CACHE");
    emulation::dnn_engines() = {{}};
    emulation::fault = cudaSuccess;
  }

  /// Runs a convolution on a device. The device then remembers its chosen engines.
  static void convolve(Device device) {
    const Tensor x = Tensor::from<float>({1, 1, 2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).to(device);
    const Tensor w = Tensor::from<float>({1, 1, 2, 2}, std::vector<float>{1, 0, 0, 10}).to(device);
    Tensor y = Tensor::zeros({1, 1, 1, 2}).to(device);
    kernels::conv2d(x, w, {}, {}, false, y);
    expect_values(y, {51, 62}, 0);
  }
  /// A device that has chosen no engine yet.
  static Device new_device() {
    static int last = 0;
    return {DeviceType::cuda, ++last};
  }
  /// The file that remembers engines.
  std::filesystem::path engine_file() const { return std::filesystem::directory_iterator(folder_.path())->path(); }
  /// How often each engine runs in one convolution.
  static std::vector<int> runs_in_one(Device device) {
    for (DnnEngine& engine : emulation::dnn_engines()) engine.runs = 0;
    convolve(device);
    std::vector<int> runs;
    for (const DnnEngine& engine : emulation::dnn_engines()) runs.push_back(engine.runs);
    return runs;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(CudaEngines, TheFastestOfThoseThatRunIsTaken) {
  emulation::dnn_engines() = {{.index = 10, .fate = fails},
                              {.index = 11, .workspace_bytes = kHuge, .milliseconds = 0.1F},
                              {.index = 12, .milliseconds = 3},
                              {.index = 13, .milliseconds = 1},
                              {.index = 14, .milliseconds = 2}};
  const Device device = new_device();
  convolve(device);
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{0, 0, 0, 1, 0}));
}

TEST_F(CudaEngines, TrialsAddNothing) {
  for (const bool deterministic : {false, true}) {
    emulation::dnn_engines() = {{.index = 10, .milliseconds = 2}, {.index = 11, .milliseconds = 1}};
    const Device device = new_device();
    kernels::set_library_rules(device, {.deterministic = deterministic});
    const Tensor dy = Tensor::from<float>({1, 1, 1, 1}, std::vector<float>{2}).to(device);
    const Tensor w = Tensor::from<float>({1, 1, 1, 3}, std::vector<float>{1, 0, 10}).to(device);
    Tensor dx = Tensor::from<float>({1, 1, 1, 3}, std::vector<float>{100, 200, 300}).to(device);
    for (const Values& expected : {Values{102, 200, 320}, Values{104, 200, 340}}) {
      kernels::conv2d_backward_data_add(dy, w, {}, dx);
      expect_values(dx, expected, 0);
    }
  }
}

TEST_F(CudaEngines, TheTimeOfTheDeviceCountsAndNotThatOfTheHost) {
  emulation::dnn_engines() = {{.index = 10, .milliseconds = 2, .launch_milliseconds = 1},
                              {.index = 11, .milliseconds = 1, .launch_milliseconds = 10}};
  const Device device = new_device();
  convolve(device);
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{0, 1}))
      << "many small kernels, which a recorded step launches at once";
}

TEST_F(CudaEngines, TheFirstThatRunsIsTakenIfRunsHaveToBeAlike) {
  emulation::dnn_engines() = {{.index = 10, .fate = fails},
                              {.index = 11, .workspace_bytes = kHuge},
                              {.index = 12, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
                              {.index = 13, .milliseconds = 3},
                              {.index = 14, .milliseconds = 1}};
  const Device device = new_device();
  kernels::set_library_rules(device, {.deterministic = true});
  convolve(device);
  EXPECT_EQ(emulation::dnn_engines()[4].runs, 0) << "not timed";
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{0, 0, 0, 1, 0}));
}

TEST_F(CudaEngines, NoneOfWinogradsIsTakenIfConvolutionsHaveToBeDirect) {
  emulation::dnn_engines() = {{.index = 10, .milliseconds = 1, .notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD}},
                              {.index = 11, .milliseconds = 1, .notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}},
                              {.index = 12, .milliseconds = 3}};
  const Device device = new_device();
  convolve(device);
  EXPECT_EQ(runs_in_one(device)[2], 0);
  kernels::set_library_rules(device, {.direct_convolutions = true});
  convolve(device);
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{0, 0, 1})) << "another engine is remembered for direct convolutions";
}

TEST_F(CudaEngines, AnotherIsTakenIfTheRulesChange) {
  emulation::dnn_engines() = {{.index = 10, .milliseconds = 1, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
                              {.index = 11, .milliseconds = 3}};
  const Device device = new_device();
  convolve(device);
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{1, 0}));
  kernels::set_library_rules(device, {.deterministic = true});
  convolve(device);
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{0, 1}));
  kernels::set_library_rules(device, {});
  EXPECT_EQ(runs_in_one(device), (std::vector<int>{1, 0})) << "remembered";
}

// One launch has bias and relu, too, if NaN and infinity pass the relu of each engine that runs. Otherwise a second
// launch does both.
TEST_F(CudaEngines, NoneGetsAReluIfOneDropsNaNOrClips) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Device device{DeviceType::cuda, 0};
  const auto rules = kernels::library_rules(device);
  kernels::set_library_rules(device, {.deterministic = true});
  int64_t dilation = 0;  // another problem for each case, with the same result
  struct Case {
    DnnEngine::Fate first, second;
    bool relu;
    std::vector<int> runs;
    size_t launches;
  };
  for (const auto& [first, second, relu, runs, launches] :
       {Case{works, works, true, {1, 0}, 1}, Case{drops_nan, works, true, {1, 0}, 2},
        Case{works, drops_nan, true, {1, 0}, 2}, Case{clips, works, true, {1, 0}, 2},
        Case{works, clips, true, {1, 0}, 2}, Case{fails, works, true, {0, 1}, 1}, Case{fails, clips, true, {0, 1}, 2},
        Case{drops_nan, clips, false, {1, 0}, 1}}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(first) << static_cast<int>(second) << relu);
    auto& engines = emulation::dnn_engines() = {{.index = 10, .fate = first}, {.index = 11, .fate = second}};
    const Tensor x = Tensor::from<float>({1, 1, 1, 4}, std::vector<float>{-7, 1, nan, infinity}).to(device);
    const Tensor w = Tensor::full({2, 1, 1, 1}, 2).to(device);
    const Tensor bias = Tensor::from<float>({2}, std::vector<float>{1, 3}).to(device);
    Tensor y = Tensor::zeros({1, 2, 1, 4}).to(device);
    ++dilation;
    const auto convolve = [&] { kernels::conv2d(x, w, bias, {.dilation = dilation}, relu, y); };
    convolve();
    for (DnnEngine& engine : engines) engine.runs = 0;
    const auto recording = record(device, convolve);
    EXPECT_EQ((std::vector<int>{engines[0].runs, engines[1].runs}), runs);
    EXPECT_EQ(recording->launches(), launches);
    recording->replay(1);
    const Tensor expected = f64({1, 2, 1, 4}, relu ? Values{0, 3, nan, infinity, 0, 5, nan, infinity}
                                                   : Values{-13, 3, nan, infinity, -11, 5, nan, infinity});
    EXPECT_EQ(test::difference(y, expected, {}), "") << "NaN is the same as NaN only";
  }
  kernels::set_library_rules(device, rules);
}

TEST_F(CudaEngines, BiasAndReluAreALaunchIfTheLibraryCannot) {
  const Device device{DeviceType::cuda, 0};
  const Tensor x = Tensor::from<float>({1, 1, 1, 2}, std::vector<float>{-7, 1}).to(device);
  const Tensor w = Tensor::full({1, 1, 1, 1}, 2).to(device), bias = Tensor::full({1}, 1).to(device);
  Tensor y = Tensor::zeros({1, 1, 1, 2}).to(device);
  const auto convolve = [&] { kernels::conv2d(x, w, bias, {}, true, y); };
  setenv("TERN_EMULATED_LACK", "pointwise", 1);
  convolve();
  unsetenv("TERN_EMULATED_LACK");
  expect_values(y, {0, 3}, 0);
  EXPECT_EQ(record(device, convolve)->launches(), 2);
}

TEST_F(CudaEngines, ARememberedOneThatNoLongerRunsIsReplaced) {
  auto& engines = emulation::dnn_engines() = {{.index = 10, .milliseconds = 1}, {.index = 11, .milliseconds = 2}};
  convolve(new_device());
  EXPECT_EQ(runs_in_one(new_device()), (std::vector<int>{2, 0})) << "tried and taken, without timing";
  engines[0].fate = fails;
  convolve(new_device());
  engines[0].fate = works;
  EXPECT_EQ(runs_in_one(new_device()), (std::vector<int>{0, 2})) << "remembered instead";
}

TEST_F(CudaEngines, ARememberedOneThatCannotBeIsReplaced) {
  emulation::dnn_engines() = {{.index = 10}};
  convolve(new_device());
  const auto file = engine_file();
  const std::string remembered = read_file(file), engine = "engine 10";
  const size_t at = remembered.find(engine);
  ASSERT_NE(at, std::string::npos) << remembered;
  write_file(file, std::string(remembered).replace(at, engine.size(), engine + " 2=1 2=1"));
  convolve(new_device());
  EXPECT_EQ(read_file(file), remembered);
}

TEST_F(CudaEngines, AnErrorIsThrownIfNoneRuns) {
  const Device device = new_device();
  emulation::dnn_engines() = {{.index = 10, .fate = fails}, {.index = 11, .fate = fails}};
  EXPECT_NE(message_of<Error>([&] { convolve(device); }).find("conv2d: cuDNN"), std::string::npos);
  emulation::dnn_engines() = {{.index = 10, .workspace_bytes = kHuge}};
  EXPECT_NE(message_of<ResourceError>([&] { convolve(device); }).find("out of memory"), std::string::npos);
  emulation::dnn_engines() = {{}};
  convolve(device);  // it still works
}

TEST_F(CudaEngines, AnErrorOfTheDeviceEndsTheSearch) {
  emulation::dnn_engines() = {{.index = 10, .fate = breaks_device}, {.index = 11}};
  EXPECT_THROW(convolve({DeviceType::cuda, 0}), Error);
  EXPECT_EQ(emulation::dnn_engines()[1].runs, 0) << "nothing runs on a broken device";
}

}  // namespace
}  // namespace tern
