#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tests/kernels/parity_cases.h"

namespace tern::cpu {
namespace {

class VectorSets : public testing::TestWithParam<VectorSet> {};

TEST_P(VectorSets, AgreeWithTheReferenceOnTheWholeParityTable) {
  if (vector_set() < GetParam()) GTEST_SKIP() << "this processor has no such vectors";
  if (vector_set() == GetParam()) GTEST_SKIP() << "Parity compares this processor's own vectors";
  const NarrowerVectors narrower(GetParam());
  ASSERT_EQ(vector_set(), GetParam());
  ASSERT_EQ(simd::kernels().width, int64_t{4} << static_cast<int>(GetParam()));
  for (const test::ParityCase& row : test::parity_table())
    if (row.kernel->has(Target::cpu))
      for (const std::string& line : test::parity_differences(row, {Target::cpu})) ADD_FAILURE() << line;
}

std::string name_of(const testing::TestParamInfo<VectorSet>& set) {
  return std::array{"Baseline", "Avx2", "Avx512"}[static_cast<size_t>(set.param)];
}

INSTANTIATE_TEST_SUITE_P(All, VectorSets, testing::ValuesIn(kVectorSets), name_of);

}  // namespace
}  // namespace tern::cpu
