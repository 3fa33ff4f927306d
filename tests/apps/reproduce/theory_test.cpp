#include <gtest/gtest.h>

#include <cmath>

#include "tern/apps/reproduce/robbins_monro.h"
#include "tern/apps/reproduce/subnet_masks.h"

namespace tern::reproduce::test {
namespace {

struct Convex {
  LinearProblem problem{LinearLoss::logistic, digit_examples(1000, 1), 10};
  LinearProblem::Vector minimizer = problem.minimizer();

  /// ‖w − w*‖², start = 1, after 5,000 and 20,000 steps.
  std::vector<double> descend(const CodedStep& code, uint64_t seed) const {
    return RobbinsMonro{problem, code, 400, seed}.distances({5000, 20000}, minimizer);
  }
};

// TernGrad's Theorem 1. With steps of 2/(ℓ (t + 400)) the distance falls as 1/t: four times in four times the steps.
// The same steps with a biased code lead elsewhere.
TEST(TernGradTheorem1, TernaryGradientsConvergeForEverySeedAndBiasedOnesDoNotSlow) {
  const Convex convex;
  for (const uint64_t seed : {1, 2, 3}) {
    const auto found = convex.descend(coded_by("ternary:clip=0", seed), seed);
    EXPECT_LT(found[1], 0.03) << "seed " << seed;
    EXPECT_LT(found[1], 0.45 * found[0]) << "seed " << seed;
  }
  EXPECT_GT(convex.descend(rounded_to_nearest, 1)[1], 0.5);
  EXPECT_GT(convex.descend(coded_by("ternary:clip=1", 1), 1)[1], 0.1);
}

// Equation (25), from which Lemma 1's condition follows. It is an equality if the code is unbiased.
TEST(TernGradLemma1, HoldsAtTheStartAndBeyondTheMinimumSlow) {
  const Convex convex;
  for (const double place : {0.0, 0.9, 1.5}) {
    LinearProblem::Vector w = convex.minimizer;
    for (double& value : w) value *= place;
    const auto point = [&](const CodedStep& code) {
      return lemma_point(convex.problem, code, w, convex.minimizer, 40);
    };
    const LemmaPoint ternary = point(coded_by("ternary:clip=0", 1)), nearest = point(rounded_to_nearest);
    EXPECT_NEAR(ternary.left.mean, ternary.right, 6 * ternary.left.standard_error()) << place;
    EXPECT_LT(ternary.left.standard_error(), 0.01 * ternary.right) << place;
    EXPECT_GT(std::abs(nearest.left.mean - nearest.right), 0.05 * nearest.right) << place;
  }
}

// IST's Properties 1 and 2, of the partition that `--method ist` draws.
TEST(IstProperties, SubnetsAreUnbiasedMasksWithTheirVarianceSlow) {
  for (const int workers : {2, 4, 8})
    for (const MaskSample& mask : sample_masks(workers, 500, 1, [](int64_t) {})) {
      SCOPED_TRACE(mask.tensor + ", " + std::to_string(workers) + " workers");
      const bool twice = mask.tensor == "layers.1.weight";  // both of its dimensions are dealt out
      EXPECT_DOUBLE_EQ(mask.share, std::pow(workers, twice ? -2 : -1));
      EXPECT_NEAR(mask.along.mean, 1, 5 * mask.along.standard_error());
      EXPECT_NEAR(mask.variance.mean, (1 - mask.share) / mask.share, 5 * mask.variance.standard_error() + 1e-9);
      EXPECT_NEAR(mask.mean_error, 1, 0.9);  // five deviations, because 64 neurons are dealt out
      EXPECT_EQ(mask.least, twice ? 0 : 1);
      EXPECT_EQ(mask.most, 1);
    }
}

}  // namespace
}  // namespace tern::reproduce::test
