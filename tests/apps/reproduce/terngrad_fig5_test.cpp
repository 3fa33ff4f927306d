#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/file_bytes.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

TEST(TernGradFigure5, WritesItsPageItsPlotsAndItsNumbers) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "figure";
  const Outcome outcome = run_program({built_program("reproduce"), "terngrad-fig5", "--out", out.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* plot : {"ethernet.svg", "infiniband.svg"})
    EXPECT_TRUE(read_file(out / plot).starts_with("<svg")) << plot;
  EXPECT_FALSE(std::filesystem::exists(out / "runs.csv"));
  const std::string page = read_file(out / "README.md"), numbers = read_file(out / "throughput.csv");
  // Calculated by hand: 8 · 128 / (0.072 + 2·243.883/10000 + 50e-6 + 243.883/125). Ternary has a sixteenth of the
  // bytes.
  for (const char* line : {"a,AlexNet,1,float32,1777.8\n", "a,AlexNet,8,float32,494.2\n",
                           "a,AlexNet,8,ternary,5196.9\n", "b,VggNet-A,512,growing,"})
    EXPECT_NE(numbers.find(line), std::string::npos) << line << numbers;
  for (const char* text :
       {"**The gains are not the paper's**: AlexNet's on 8 GPUs is 3.5 times", "|        3.04 | 10.52 |      +7.48 |",
        "[throughput.csv](throughput.csv)", "![ethernet.svg](ethernet.svg)"})
    EXPECT_NE(page.find(text), std::string::npos) << page;
}

TEST(TernGradFigure5, ComputesFromMeasuredSteps) {
  const TemporaryFolder folder;
  const auto steps = (folder.path() / "tern.rows").string(), out = (folder.path() / "figure").string();
  write_file(steps,
             "# NVIDIA X1\n# network  batch math  way                     ms   images/s\n"
             "alexnet      256 bf16  tern-one-by-one    50.0000       5120\n"
             "alexnet      256 bf16  tern-graph         40.0000       6400\n"
             "resnet18      64 bf16  tern-graph          5.0000      12800\n");
  const Outcome outcome = run_program({built_program("reproduce"), "terngrad-fig5", "--steps", steps, "--out", out});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_file(out + "/README.md"), numbers = read_file(out + "/throughput.csv");
  // One GPU: 256 images in 40 ms, in both clusters. GoogLeNet's step is the published one.
  for (const char* line :
       {"a,AlexNet,1,float32,6400.0\n", "b,AlexNet,1,float32,6400.0\n", "a,GoogLeNet,1,float32,323.6\n"})
    EXPECT_NE(numbers.find(line), std::string::npos) << line << numbers;
  for (const char* text : {"AlexNet 40 ms (256 images, 244 MB of gradients, measured: tern-graph, bf16)",
                           "GoogLeNet 197.8 ms (64 images, ", "on NVIDIA X1; that GPU"})
    EXPECT_NE(page.find(text), std::string::npos) << page;
}

TEST(TernGradFigure5, NamesTheLineOfAFileOfStepsThatItCannotRead) {
  const TemporaryFolder folder;
  const auto steps = (folder.path() / "tern.rows").string(), out = (folder.path() / "figure").string();
  const auto refusal = [&](const std::string& text, const std::string& table = "terngrad-fig5") {
    write_file(steps, text);
    const Outcome outcome = run_program({built_program("reproduce"), table, "--steps", steps, "--out", out});
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  for (const char* row :
       {"alexnet 256 bf16 tern-graph x", "alexnet 256 bf16 tern-graph -1", "alexnet 0 bf16 w 1", "alexnet"})
    EXPECT_NE(refusal(std::string("# X\n") + row + "\n")
                  .find("tern.rows, line 2: found '" + std::string(row) +
                        "', expected network, images, precision, way and milli"),
              std::string::npos)
        << row;
  EXPECT_NE(refusal("# X\n").find("has no row of a step"), std::string::npos);
  EXPECT_NE(
      refusal("lenet 64 fp32 tern-graph 1\n").find("has none of alexnet, googlenet, vgg-a; its first row is of lenet"),
      std::string::npos);
  EXPECT_NE(refusal("alexnet 64 fp32 w 1\n", "qsgd-fig1").find("--steps would change nothing: qsgd-fig1"),
            std::string::npos);
}

TEST(TernGradFigure5, RefusesFlagsThatChangeNothing) {
  const Outcome outcome = run_program({built_program("reproduce"), "terngrad-fig5", "--workers", "2,4"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(
                "terngrad-fig5 is computed: --data, --data-dir, --iterations, --seeds, --workers and --quick would"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace tern
