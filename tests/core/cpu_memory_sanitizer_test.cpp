#include <gtest/gtest.h>

#include <string_view>

#include "tern/core/tensor.h"

namespace tern {
namespace {

class CpuMemorySanitized : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(TERN_SANITIZE).find("address") == std::string_view::npos)
      GTEST_SKIP() << "this build has no AddressSanitizer";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests have started threads
  }
};

TEST_F(CpuMemorySanitized, EndsAProgramThatWritesBesideATensor) {
  for (const int64_t size : {1, 16, 1000, 1024, 100003}) {
    const Tensor tensor = Tensor::zeros({size});
    volatile float* values = tensor.data<float>();
    EXPECT_DEATH(values[size] = 1, "AddressSanitizer") << size;
    EXPECT_DEATH(values[-1] = 1, "AddressSanitizer") << size;
  }
}

TEST_F(CpuMemorySanitized, EndsAProgramThatWritesBetweenLargeTensors) {
  constexpr int64_t kSize = 1 << 18;
  const Tensor first = Tensor::zeros({kSize}), second = Tensor::zeros({kSize});
  for (const Tensor& tensor : {first, second}) {
    volatile float* values = tensor.data<float>();
    EXPECT_DEATH(values[kSize] = 1, "AddressSanitizer");
    EXPECT_DEATH(values[-1] = 1, "AddressSanitizer");
  }
  const volatile float* gone = Tensor::zeros({kSize}).data<float>();
  EXPECT_DEATH(static_cast<void>(gone[kSize / 2]), "AddressSanitizer");
}

TEST_F(CpuMemorySanitized, FillsNewTensorsWithNaN) {
  for (int i = 0; i < 2; ++i) {  // the second tensor takes the memory of the first
    const Tensor tensor = Tensor::empty({1000});
    for (float& value : tensor.span<float>()) {
      ASSERT_NE(value, value);
      value = 1;
    }
  }
}

TEST_F(CpuMemorySanitized, EndsAProgramThatReadsATensorThatIsGone) {
  const volatile float* values = Tensor::zeros({1000}).data<float>();
  EXPECT_DEATH(static_cast<void>(values[0]), "AddressSanitizer");
  const Tensor reused = Tensor::full({999}, 7);
  EXPECT_EQ(reused.to_vector<float>(), std::vector<float>(999, 7)) << "memory that serves again is in use again";
}

}  // namespace
}  // namespace tern
