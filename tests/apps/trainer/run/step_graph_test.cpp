#include "tern/trainer/run/step_graph.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
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

/// Its training step is loss = 2 · x, with a tensor that it needs only meanwhile.
struct CudaStepGraph : testing::Test {
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }

  Module model;
  StepGraph graph{model, [](const DeviceBatch& batch) {
                    StepOutput output{.loss = Tensor::empty_like(batch["x"]), .outputs = {}};
                    Tensor meanwhile = Tensor::empty_like(batch["x"]);
                    kernels::scale(batch["x"], 4, meanwhile);
                    kernels::scale(meanwhile, 0.5, output.loss);
                    return output;
                  }};
};

TEST_F(CudaStepGraph, RunsBatchesOfTheRecordedShapesInTheirMemory) {
  const DeviceBatch even = batch_of(2, 0), odd = batch_of(2, 0), third = batch_of(2, 0);
  EXPECT_FALSE(graph.takes(even));
  EXPECT_FALSE(graph.takes(odd));
  EXPECT_FALSE(graph.takes(even));
  uint32_t step = 4;
  Tensor before;
  for (const DeviceBatch* batch : {&odd, &even, &odd, &even, &third, &even, &third, &odd}) {
    EXPECT_TRUE(graph.takes(*batch));
    EXPECT_FALSE(graph.takes(batch_of(3, 0)));
    (*batch)["x"].fill(step);
    const Tensor loss = graph.run(*batch, step).loss;
    expect_values(loss, {2.0 * step, 2.0 * step}, 0);
    if (before.defined()) expect_values(before, {2.0 * (step - 1), 2.0 * (step - 1)}, 0);  // it may still be read
    before = loss;
    ++step;
  }
  EXPECT_THROW(graph.run(batch_of(2, 0), step), Error) << "nothing is recorded there";
}

TEST_F(CudaStepGraph, RecordsNothingWhileShapesChange) {
  for (int64_t step = 0; step < 12; ++step) EXPECT_FALSE(graph.takes(batch_of(1 + step % 2, 0)));
  EXPECT_EQ(graph.launches(), 0u);
  const DeviceBatch batch = batch_of(7, 0);
  EXPECT_FALSE(graph.takes(batch));
  EXPECT_TRUE(graph.takes(batch));
  EXPECT_EQ(graph.launches(), 2u);
}

}  // namespace
}  // namespace tern
