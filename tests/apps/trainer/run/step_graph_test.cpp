#include "tern/trainer/run/step_graph.h"

#include <gtest/gtest.h>

#include "tern/kernels/elementwise.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using namespace trainer;

constexpr Device kGpu{DeviceType::cuda, 0};

/// A batch with the field "x", [n], whose elements are `value`.
DeviceBatch batch_of(int64_t n, double value) {
  return {Batch(Tensor::zeros({1}, {.dtype = DType::i64, .device = kGpu}),
                {{"x", Tensor::full({n}, value, {.device = kGpu})}}),
          {},
          DType::f32};
}

/// Its training step is loss = 2 · x.
struct CudaStepGraph : testing::Test {
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }

  Module model;
  StepGraph graph{model, [](const DeviceBatch& batch) {
                    StepOutput output{.loss = Tensor::empty_like(batch["x"]), .outputs = {}};
                    kernels::scale(batch["x"], 2, output.loss);
                    return output;
                  }};
};

TEST_F(CudaStepGraph, RunsBatchesOfTheRecordedShapesAlone) {
  for (int step = 0; step < 3; ++step) EXPECT_FALSE(graph.takes(batch_of(4, 0)));
  EXPECT_TRUE(graph.takes(batch_of(4, 0)));
  expect_values(graph.run(batch_of(4, 3), 4).loss, {6, 6, 6, 6}, 0);
  EXPECT_FALSE(graph.takes(batch_of(3, 0)));
  EXPECT_TRUE(graph.takes(batch_of(4, 0)));
  expect_values(graph.run(batch_of(4, 5), 6).loss, {10, 10, 10, 10}, 0);
}

TEST_F(CudaStepGraph, RecordsNothingWhileShapesChange) {
  for (int64_t step = 0; step < 12; ++step) EXPECT_FALSE(graph.takes(batch_of(1 + step % 2, 0)));
  EXPECT_EQ(graph.launches(), 0u);
  EXPECT_FALSE(graph.takes(batch_of(7, 0)));
  EXPECT_TRUE(graph.takes(batch_of(7, 0)));
  EXPECT_EQ(graph.launches(), 1u);
}

}  // namespace
}  // namespace tern
