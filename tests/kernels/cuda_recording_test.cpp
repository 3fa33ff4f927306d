#include <gtest/gtest.h>

#include "tern/kernels/dropout.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/recording.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

class CudaRecording : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
  static Tensor on_device(const std::vector<float>& values) {
    return Tensor::from<float>({std::ssize(values)}, values).to(device);
  }
  static constexpr Device device{DeviceType::cuda, 0};
};

TEST_F(CudaRecording, RunsAgainOnWhatItsInputsHoldThen) {
  const Tensor x = on_device({1, 2, 3});
  Tensor y;
  const auto recording = record(device, [&] {
    Tensor doubled = Tensor::empty_like(x);
    kernels::scale(x, 2, doubled);
    y = Tensor::empty_like(x);
    kernels::add(doubled, x, y);
  });
  EXPECT_EQ(recording->launches(), 2u);
  recording->replay(0);
  expect_values(y, {3, 6, 9}, 0);
  const Tensor others = on_device({7, 7, 7});  // not in the memory of the recording's `doubled`
  x.copy_from(on_device({-1, 0, 5}));
  recording->replay(1);
  expect_values(y, {-3, 0, 15}, 0);
  expect_values(others, {7, 7, 7}, 0);
}

/// y = 3 · x, recorded, with scratch memory.
struct Tripling {
  explicit Tripling(const Tensor& x, const Recording* earlier = nullptr)
      : recording(record(
            x.device(),
            [&] {
              y = Tensor::empty_like(x);  // if recordings shared blocks, this would be another's scratch memory
              Tensor doubled = Tensor::empty_like(x);
              kernels::scale(x, 2, doubled);
              kernels::add(doubled, x, y);
            },
            earlier)) {}

  Tensor y;
  std::unique_ptr<Recording> recording;
};

TEST_F(CudaRecording, KeepsItsOutputWhileAnotherRuns) {
  const Tensor x = on_device({1, 2, 3}), other = on_device({10, 20, 30});
  const Tripling first(x), second(other);
  second.recording->replay(0);
  first.recording->replay(0);
  expect_values(first.y, {3, 6, 9}, 0);
  expect_values(second.y, {30, 60, 90}, 0);
}

TEST_F(CudaRecording, GivesItsResultAlsoInTheMemoryOfAnEarlierOne) {
  const Tensor x = on_device({1, 2, 3}), other = on_device({10, 20, 30});
  const Tripling first(x), second(other, first.recording.get());
  for (const Tripling* each : {&second, &first, &second}) {
    each->recording->replay(0);
    expect_values(each->y, each == &first ? std::vector<double>{3, 6, 9} : std::vector<double>{30, 60, 90}, 0);
  }
}

TEST_F(CudaRecording, LeavesItsMemoryToOtherWork) {
  const Tensor x = Tensor::zeros({1 << 23}, {.device = device});  // so large that each tensor has a segment of its own
  const auto reserved = [&] { return device_backend(device).statistics().reserved; };
  { const Tripling first(x); }
  const int64_t before = reserved();
  const Tensor a = Tensor::empty_like(x), b = Tensor::empty_like(x);
  EXPECT_EQ(reserved(), before) << "the recording's two blocks are there";
}

TEST_F(CudaRecording, DrawsWhatTheStepDraws) {
  const Tensor x = Tensor::full({2, 40}, 1).to(device), samples = Tensor::zeros({2}, {.dtype = DType::i64}).to(device);
  const auto draw = [](uint32_t step) { return kernels::DropoutDraw{.seed = 3, .step = step, .layer = 1}; };
  Tensor y = Tensor::empty_like(x), expected = Tensor::empty_like(x);
  const auto recording = record(device, [&] { kernels::dropout(x, samples, draw(5), y); });
  for (const uint32_t step : {5u, 6u, 1000000u}) {
    recording->replay(step);
    kernels::dropout(x, samples, draw(step), expected);
    EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>()) << "step " << step;
  }
}

TEST_F(CudaRecording, RefusesWhatTheCpuTakesPartIn) {
  const Tensor x = on_device({1, 2, 3});
  EXPECT_NE(message_of<Error>([&] { record(device, [&] { x.to_vector<float>(); }); }).find("is being recorded"),
            std::string::npos);
  Tensor y = Tensor::empty_like(x);
  kernels::scale(x, 2, y);
  expect_values(y, {2, 4, 6}, 0);  // the device works as before
  EXPECT_THROW(record({}, [] {}), Error) << "the CPU";
}

}  // namespace
}  // namespace tern
