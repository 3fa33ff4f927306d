#include <gtest/gtest.h>

#include "tests/apps/reproduce/stand_in_trainers.h"
#include "tests/support/process.h"

namespace tern {
namespace {

class ReproduceTernGrad : public StandInTrainers {
 protected:
  Outcome reproduce(const std::vector<std::string>& flags) const {
    return run_program(words({programs_ / "reproduce"}, words(flags, {"--out", results_})));
  }
};

TEST_F(ReproduceTernGrad, Table1TrainsAllRowsOnEquallyManyImages) {
  const Outcome outcome = reproduce({"terngrad-table1", "--data-dir", programs_, "--iterations", "160"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(calls().size(), 4);
  EXPECT_EQ(containing(calls(), "--batch-size 128 --iterations 160 "), 2);
  EXPECT_EQ(containing(calls(), "--batch-size 2048 --iterations 10 "), 2);
  EXPECT_EQ(containing(calls(), "--workers 16 --transport inproc --codec ternary --exchange server"), 1);
  // The accuracy is 99.10 % for float, 99.08 % for ternary with two workers, and 98.94 % with sixteen.
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "|     float |       1 | 160 (shortened) |     1 |       99.10 |          86.56 |"), 1)
      << outcome.out;
  EXPECT_EQ(
      containing(page, "99.08 |          85.64 |             +13.44 |                      +0.02 |       +0.92 |"), 1);
  // Sixteen workers also log 16,000 bytes in 10 steps.
  EXPECT_EQ(containing(page,
                       "98.94 |          82.80 |             +16.14 |                      +0.16 |       +0.39 |"
                       "             0.002 |"),
            1);
  EXPECT_NE(read_file(results_ / "accuracy.svg").find("batch 2048, 16 workers"), std::string::npos);
}

TEST_F(ReproduceTernGrad, Table1OnShapesHasNoDifferenceFromThePaper) {
  const Outcome outcome = reproduce({"terngrad-table1", "--data", "shapes", "--iterations", "160"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "99.10 |          86.56 |                  – |"), 1) << outcome.out;
  EXPECT_EQ(containing(page, "not on the paper's CIFAR-10"), 1);
}

TEST_F(ReproduceTernGrad, Table1BySwiftRecipeRepeatsOnlyTheShortRows) {
  const std::vector<std::string> flags = {"terngrad-table1", "--data-dir", programs_, "--swift", "--iterations", "160"};
  const Outcome outcome = reproduce(words(flags, {"--seeds", "3"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 3 + 3 + 1 + 1);
  EXPECT_EQ(containing(calls(), "--recipe swift --batch-size 128 --iterations 160 "), 6);
  EXPECT_EQ(containing(calls(), "--recipe swift --batch-size 2048 --iterations 10 "), 2);
  EXPECT_EQ(containing(calls(), "--optimizer momentum --weight-decay 0.004 --lr 0.02 --ema-decay 0.999"), 6);
  EXPECT_EQ(containing(calls(), "--optimizer momentum --weight-decay 0.004 --lr 0.08 --ema-decay 0.984119"), 2);
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "The optimizer is SGD with momentum 0.9. Its learning rate is 0.02 and falls"), 1);
  EXPECT_EQ(containing(page, "This is the recipe swift"), 1) << outcome.out;
}

TEST_F(ReproduceTernGrad, RefusesASwiftFormThatATableDoesNotHave) {
  const Outcome outcome = reproduce({"terngrad-table2", "--swift"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--swift would change nothing: terngrad-table2 has no such form"), std::string::npos);
  const Outcome both = reproduce({"terngrad-table1", "--swift", "--quick"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("--quick and --swift exclude each other"), std::string::npos) << both.err;
}

TEST_F(ReproduceTernGrad, StartComparesClippingAndTheLastLayerAtThePapersRate) {
  const Outcome outcome = reproduce({"terngrad-start", "--data", "shapes", "--quick"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(calls().size(), 4);
  EXPECT_EQ(containing(calls(), "--lr 0.0002 --ema-decay 0.9999"), 4);
  EXPECT_EQ(containing(calls(), "--exchange server --codec ternary:clip=0 "), 1);
  EXPECT_EQ(containing(calls(), "--exchange server --codec ternary --keep-float fc3.* "), 1);
  EXPECT_EQ(containing(lines_of(results_ / "README.md"), "TernGrad, last layer float"), 1) << outcome.out;
}

TEST_F(ReproduceTernGrad, Table2ComparesClippingWithNone) {
  const Outcome outcome = reproduce({"terngrad-table2", "--quick", "--seeds", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(calls().size(), 6);
  EXPECT_EQ(containing(calls(), "--dropout 0.5"), 2);
  EXPECT_EQ(containing(calls(), "--codec ternary:clip=0 --exchange server --keep-float 'fc8.*'"), 0) << "quoted";
  EXPECT_EQ(containing(calls(), "--codec ternary:clip=0 --exchange server --keep-float fc8.* --min-compress 9217"), 2);
  EXPECT_EQ(containing(lines_of(results_ / "README.md"), "TernGrad-noclip |       0.0005 |     0.2 |"), 1)
      << outcome.out;
}

TEST_F(ReproduceTernGrad, Table2TakesAFolderOfImages) {
  const Outcome outcome = reproduce({"terngrad-table2", "--quick", "--data", "images", "--data-dir", programs_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(calls().size(), 3);
  EXPECT_EQ(containing(calls(), "--data images --batch-size 32 "), 3);
  EXPECT_EQ(containing(calls(), " --data-dir " + programs_.string() + " --log "), 3);
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "on the images of a folder (the paper's are ImageNet's). "), 1);
  EXPECT_EQ(containing(page, "|          54.63 |                  – |"), 1)
      << "images that ImageNet's are no measure of";
}

TEST_F(ReproduceTernGrad, Table3HasTheSettingsOfEachRow) {
  const Outcome outcome = reproduce({"terngrad-table3", "--data", "shapes224", "--iterations", "4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(calls().size(), 6);
  EXPECT_EQ(containing(calls(), "--lr-schedule poly --top 5 --weight-decay 4e-05 --dropout 0.2 --ema-decay 0.9999"), 3);
  EXPECT_EQ(containing(calls(), "--weight-decay 1e-05 --dropout 0.08"), 2);
  EXPECT_EQ(containing(calls(), "--codec ternary --exchange server --keep-float fc.* --min-compress 9217"), 3);
  EXPECT_EQ(containing(calls(), "--batch-size 512 --iterations 2 --lr 0.1 "), 2);
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "top-5 accuracy, %"), 1);
  EXPECT_EQ(containing(page, "|          86.47 |"), 1) << outcome.out;
}

TEST_F(ReproduceTernGrad, RefusesWhatCannotBe) {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"terngrad-fig2", "--data", "shapes", "--workers", "2,4"}, "--workers: found 2 numbers, expected one"},
      {{"terngrad-fig4", "--data", "shapes", "--workers", "3"},
       "--workers: found 3, expected a number from 1 that shares"},
      {{"terngrad-fig4", "--data", "shapes", "--seeds", "3"}, "--seeds would change nothing"},
      {{"terngrad-table1"},
       "terngrad-table1 needs --data-dir DIR with the files of cifar10, or, to try it, --data shapes"},
      {{"terngrad-table1", "--data", "shapes", "--workers", "4"}, "--workers: found 4, expected 2, 16 or both"},
      {{"terngrad-table2", "--data", "images"}, "terngrad-table2 needs --data-dir DIR with the files of images"},
      {{"terngrad-table2", "--data", "cifar10"}, "--data: found 'cifar10', expected shapes224|images"},
      {{"terngrad-table3"},
       "terngrad-table3 needs --data-dir DIR with the files of images, or, to try it, --data shapes224"},
      {{"terngrad-table3", "--data", "shapes224", "--workers", "3"}, "--workers: found 3, expected some of 2, 4, 8"},
      {{"qsgd-table1-speed", "--workers", "3"}, "--workers would change nothing: qsgd-table1-speed trains no network"},
      {{"terngrad-table2", "--workers", "16"}, "--workers: found 16, expected some of 2, 4, 8"},
  };
  for (const auto& [flags, sentence] : rows) {
    const Outcome outcome = reproduce(flags);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
}

TEST_F(ReproduceTernGrad, FiguresLookAtGradientsSlow) {
  const Outcome histograms = reproduce({"terngrad-fig2", "--data", "shapes", "--iterations", "2"});
  ASSERT_EQ(histograms.code, 0) << histograms.err;
  const auto rows = lines_of(results_ / "histograms.csv");
  EXPECT_EQ(rows.size(), 1 + 2 * 2 * (121 + 121 + 41 + 41)) << "tensors, steps, bins of the stages";
  EXPECT_NE(read_file(results_ / "histograms.svg").find("(d) averaged"), std::string::npos);

  fs::remove_all(results_);
  const Outcome sparsity = reproduce({"terngrad-fig4", "--data", "shapes", "--iterations", "2"});
  ASSERT_EQ(sparsity.code, 0) << sparsity.err;
  EXPECT_EQ(lines_of(results_ / "ternary.csv").size(), 3);
  EXPECT_EQ(containing(calls(), "--data shapes --batch-size 128 --iterations 2 --optimizer adam"), 1);
  EXPECT_NE(sparsity.out.find("|       71.32 |"), std::string::npos) << sparsity.out;
  EXPECT_NE(read_file(results_ / "training.svg").find("(c) zeros"), std::string::npos);
}

}  // namespace
}  // namespace tern
