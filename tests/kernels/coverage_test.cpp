#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "tern/kernels/kernel.h"

namespace tern {
namespace {

const auto kProvidedKernels = all_kernels();  // before tests provide kernels of their own

TEST(Coverage, HasNoHole) {
  const auto& kernels = kProvidedKernels;
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
    if (provides(Target::cpu)) {
      EXPECT_TRUE(kernel->has(Target::cpu)) << name;
    }
    if (provides(Target::cuda)) {
      EXPECT_TRUE(kernel->has(Target::cuda)) << name;
    }
  }
}

}  // namespace
}  // namespace tern
