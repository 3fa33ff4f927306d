#include "tern/kernels/kernel.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace tern {
namespace {

TEST(Kernel, PicksTheTargetByDeviceAndDType) {
  static constinit Kernel<void(const Tensor& x, Target& ran)> probe{"probe"};
  probe.provide(Target::reference, [](const Tensor&, Target& ran) { ran = Target::reference; });
  Target ran = Target::cuda;
  probe(Tensor::zeros({1}), ran);
  EXPECT_EQ(ran, Target::reference) << "without fast code, f32 goes to the reference";
  probe.provide(Target::cpu, [](const Tensor&, Target& target) { target = Target::cpu; });
  probe(Tensor::zeros({1}), ran);
  EXPECT_EQ(ran, Target::cpu);
  probe(Tensor::zeros({1}, {.dtype = DType::bf16}), ran);
  EXPECT_EQ(ran, Target::cpu);
  probe(Tensor::zeros({1}, {.dtype = DType::f64}), ran);
  EXPECT_EQ(ran, Target::reference) << "f64 is for gradient checks";
  probe.on(Target::cpu)(Tensor::zeros({1}, {.dtype = DType::f64}), ran);
  EXPECT_EQ(ran, Target::cpu) << "on() asks nobody";
}

TEST(Kernel, NamesWhatIsMissing) {
  static constinit Kernel<void(const Tensor& x)> lonely{"lonely"};
  EXPECT_EQ(message_of<Error>([] { lonely(Tensor::zeros({1})); }),
            "lonely: no implementation on reference in this build");
  EXPECT_EQ(message_of<Error>([] { lonely.on(Target::cuda); }), "lonely: no implementation on cuda in this build");
  EXPECT_EQ(message_of<Error>([] { lonely(Tensor()); }), "lonely: the first argument is undefined, expected a tensor");
}

}  // namespace
}  // namespace tern
