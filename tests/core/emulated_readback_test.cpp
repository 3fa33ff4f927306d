#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/readback.h"

namespace tern {
namespace {

TEST(EmulatedReadback, WaitsForWhatWasIssuedBefore) {
  constexpr Device kGpu{DeviceType::cuda, 0};
  const std::vector<float> values{1, 2, 3};
  const Tensor source = Tensor::from<float>({3}, values).to(kGpu);
  const auto readback = make_readback(kGpu);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  emulation::add(*cuda::enter(kGpu), ended);
  auto arrival = std::async(std::launch::async, [&] {
    readback->start(source);
    return readback->wait();
  });
  EXPECT_EQ(arrival.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  *ended = true;
  EXPECT_EQ(arrival.get().to_vector<float>(), values);
}

}  // namespace
}  // namespace tern
