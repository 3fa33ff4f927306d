#include <gtest/gtest.h>

#include <cstdlib>

#include "tern/kernels/matmul.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

TEST(CudaProduct, SumsInF32WhateverTheResultIs) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  // matmul may split the sum into parts. If it rounded a part to bf16, 256 + 1 would become 256.
  constexpr int64_t kTerms = 4096;
  std::vector<float> terms(kTerms, 0);
  terms[0] = 256;
  terms[kTerms / 2 - 1] = 1;
  terms[kTerms - 1] = -256;
  const auto a = Tensor::from<float>({1, kTerms}, terms).to(DType::bf16).to(device);
  const auto b = Tensor::full({kTerms, 1}, 1).to(DType::bf16).to(device);
  Tensor y = Tensor::empty({1, 1}, {.dtype = DType::bf16, .device = device});
  kernels::matmul(a, b, {}, y);
  expect_values(y.to(DType::f64), {1}, 0);
}

TEST(CudaProduct, AddsTheBiasAndAddsUpItsGradientIfTheLibraryCannot) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  const auto dy = Tensor::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).to(device);
  const auto x = Tensor::from<float>({2, 2}, std::vector<float>{1, 0, 2, 1}).to(device);
  Tensor dw = Tensor::empty({3, 2}, {.device = device}), db = Tensor::empty({3}, {.device = device});
  Tensor y = Tensor::empty({2, 1}, {.device = device});
  setenv("TERN_EMULATED_LACK", "epilogues", 1);
  const auto w = Tensor::from<float>({1, 2}, std::vector<float>{1, 2}).to(device);
  kernels::linear(x, w, Tensor::full({1}, 10).to(device), false, y);
  kernels::linear_backward_weights(dy, x, dw, db);
  unsetenv("TERN_EMULATED_LACK");
  expect_values(y, {11, 14}, 0);
  expect_values(dw, {9, 4, 12, 5, 15, 6}, 0);
  expect_values(db, {5, 7, 9}, 0);
}

// An algorithm that was chosen beside an aligned vector must not get another one.
TEST(CudaProduct, TakesABiasAndItsGradientOfAnyAlignment) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  const auto x = Tensor::from<float>({2, 2}, std::vector<float>{1, 0, 2, 1}).to(device);
  const auto w = Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}).to(device);
  const auto dy = Tensor::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).to(device);
  const auto biases = Tensor::from<float>({8}, std::vector<float>{10, 20, 30, 40, 50, 60, 70, 80}).to(device);
  for (const int64_t first : {0, 1, 4, 2}) {
    SCOPED_TRACE(first);
    Tensor y = Tensor::empty({2, 3}, {.device = device}), dw = Tensor::empty({3, 2}, {.device = device});
    kernels::linear(x, w, biases.slice(first, first + 3), false, y);
    const auto b = static_cast<double>(10 * first);
    expect_values(y, {b + 11, b + 23, b + 35, b + 14, b + 30, b + 46}, 0);
    const Tensor gradients = Tensor::zeros({8}).to(device);
    Tensor db = gradients.slice(first, first + 3);
    kernels::linear_backward_weights(dy, x, dw, db);
    expect_values(dw, {9, 4, 12, 5, 15, 6}, 0);
    expect_values(db, {5, 7, 9}, 0);
  }
}

}  // namespace
}  // namespace tern
