#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/parity_cases.h"
#include "tests/support/cuda.h"

namespace tern::test {

const ParityTable& parity_table() {
  static const ParityTable table = [] {
    ParityTable rows;
    for (const auto add :
         {add_elementwise_cases, add_reduction_cases, add_matmul_cases, add_convolution_cases, add_pooling_cases,
          add_normalization_cases, add_loss_cases, add_softmax_chunk_cases, add_embedding_cases, add_sequence_cases,
          add_layout_cases, add_update_cases, add_codec_cases})
      add(rows);
    return rows;
  }();
  return table;
}

namespace {

class Parity : public testing::TestWithParam<const KernelBase*> {};

TEST_P(Parity, EveryTargetOfTheCpuAgreesWithTheReferenceInDoublePrecision) {
  int cases = 0;
  for (const ParityCase& row : parity_table()) {
    if (row.kernel != GetParam()) continue;
    ++cases;
    for (const std::string& line : parity_differences(row)) ADD_FAILURE() << line;
  }
  EXPECT_GT(cases, 0) << GetParam()->name() << " has no case in the parity table";
}

INSTANTIATE_TEST_SUITE_P(Kernels, Parity, testing::ValuesIn(all_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name()); });

class CudaParity : public Parity {
  void SetUp() override {
    if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(CudaParity, AgreesWithTheReferenceInDoublePrecision) {
  for (const ParityCase& row : parity_table())
    if (row.kernel == GetParam())
      for (const std::string& line : parity_differences(row, {Target::cuda})) ADD_FAILURE() << line;
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaParity, testing::ValuesIn(all_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name()); });

TEST(ParityHarness, NamesTheWorstElement) {
  const auto expected = Tensor::from<double>({2, 3}, std::vector<double>{1, 2, 3, 4, 5, 10});
  const auto found = Tensor::from<double>({2, 3}, std::vector<double>{1, 2, 3.5, 6, 5, 10});
  EXPECT_EQ(difference(found, found, {}), "");
  EXPECT_EQ(difference(found, expected, {.largest = 0.21, .squared = 0.1}), "");
  const std::string line = difference(found, expected, {.largest = 0.19, .squared = 0.1});
  EXPECT_NE(line.find("shape [2, 3], element 3 is 6, expected 4"), std::string::npos) << line;
}

TEST(ParityHarness, HoldsTheMeanErrorToo) {
  const auto expected = Tensor::full({100}, 1), found = Tensor::full({100}, 1.09);
  EXPECT_EQ(difference(found, expected, {.largest = 0.1, .squared = 0.01}), "");
  EXPECT_NE(difference(found, expected, {.largest = 0.1, .squared = 0.005}), "");
}

TEST(ParityHarness, TakesNaNForNaNAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto written = Tensor::full({3}, 1), partly = Tensor::from<float>({3}, std::vector<float>{1, nan, 1});
  EXPECT_EQ(difference(partly, partly, {}), "");
  EXPECT_NE(difference(partly, written, {.largest = 1, .squared = 1}), "");
  EXPECT_NE(difference(written, partly, {.largest = 1, .squared = 1}), "");
}

}  // namespace
}  // namespace tern::test
