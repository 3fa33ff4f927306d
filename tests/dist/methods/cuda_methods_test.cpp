#include <gtest/gtest.h>

#include <limits>

#include "tern/core/error.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/demo.h"
#include "tern/dist/methods/local_sgd.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using MakeMethod = std::unique_ptr<DistributedOptimizer> (*)(const RankTraining& rank);

// A step does not wait for its device. The rank whose gradient is at fault learns it later, and only that rank.
TEST(CudaMethods, NameAGradientThatIsNotFiniteWhenTheyAreAsked) {
  if (const auto reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr Device kGpu{DeviceType::cuda, 0};
  constexpr int64_t kStep = 3;
  const MakeMethod methods[] = {
      [](const RankTraining& rank) -> std::unique_ptr<DistributedOptimizer> {
        const DataParallel::Options options = {.averaging = {.codec = "ternary"}, .check_every = 0};
        return std::make_unique<DataParallel>(rank.model, rank.local, rank.communicator, options);
      },
      [](const RankTraining& rank) -> std::unique_ptr<DistributedOptimizer> {
        const LocalSgd::Options options = {.averaging = {.codec = "qsgd"}, .check_every = 0};
        return std::make_unique<LocalSgd>(rank.model, rank.local, rank.communicator, options);
      },
      [](const RankTraining& rank) -> std::unique_ptr<DistributedOptimizer> {
        return std::make_unique<DeMo>(rank.model, rank.local, rank.communicator, DeMo::Options{.check_every = 0});
      }};
  for (const MakeMethod make : methods)
    train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      rank.model.initialize(1, DType::f32, kGpu);
      Sgd plain(rank.model.parameters(), {.lr = 0.1});
      const auto method = make({rank.communicator, rank.model, plain});
      method->begin_step(kStep);
      for (const auto& [name, parameter] : rank.model.trained_parameters()) {
        Tensor gradient = Tensor::full(parameter->value().shape(), 0.5);
        if (rank.communicator.rank() == 1 && name == "last.weight")
          gradient.span<float>()[7] = std::numeric_limits<float>::quiet_NaN();
        parameter->set_gradient(gradient.to(kGpu));
      }
      method->step();
      device_backend(kGpu).synchronize();
      EXPECT_NO_THROW(method->confirm(kStep));
      const auto confirm = [&] { method->confirm(kStep + 1); };
      const std::string expected = "gradient of 'last.weight' has NaN or infinite elements";
      EXPECT_EQ(message_of<InputError>(confirm).substr(0, expected.size()),
                rank.communicator.rank() == 1 ? expected : "");
    });
}

}  // namespace
}  // namespace tern::test
