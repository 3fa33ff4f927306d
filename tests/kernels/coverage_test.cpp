#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <string>

#include "tern/kernels/kernel.h"

namespace tern {
namespace {

/// Operations that may lack fast CPU code: there the CPU runs the reference.
const std::set<std::string> kLeftToReference = {"add",
                                                "batch_norm_backward",
                                                "batch_norm_inference",
                                                "batch_norm_training",
                                                "broadcast_to",
                                                "conv2d",
                                                "conv2d_backward_data",
                                                "conv2d_backward_weights",
                                                "convert",
                                                "divide",
                                                "dropout",
                                                "extract",
                                                "fill",
                                                "insert",
                                                "local_response_norm",
                                                "local_response_norm_backward",
                                                "mse",
                                                "mse_backward",
                                                "multiply",
                                                "subtract",
                                                "sum",
                                                "transpose"};

TEST(Coverage, HasNoHoleThatIsNotListed) {
  const auto kernels = all_kernels();
  const auto provides = [&](Target target) {
    return std::ranges::any_of(kernels, [=](const KernelBase* kernel) { return kernel->has(target); });
  };
  std::cout << "operation                      reference  cpu  cuda\n";
  for (const KernelBase* kernel : kernels) {
    const std::string name = kernel->name();
    const auto mark = [&](Target target) { return kernel->has(target) ? "x" : "."; };
    std::cout << name << std::string(31 - name.size(), ' ') << mark(Target::reference) << "          "
              << mark(Target::cpu) << "    " << mark(Target::cuda) << "\n";
    EXPECT_TRUE(kernel->has(Target::reference)) << name;
    if (provides(Target::cpu) && !kLeftToReference.contains(name)) {
      EXPECT_TRUE(kernel->has(Target::cpu)) << name;
    }
    if (provides(Target::cuda)) {
      EXPECT_TRUE(kernel->has(Target::cuda)) << name;
    }
  }
}

}  // namespace
}  // namespace tern
