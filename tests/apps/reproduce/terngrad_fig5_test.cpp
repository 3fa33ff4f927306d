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
  const Outcome outcome = run_program({TERN_REPRODUCE, "terngrad-fig5", "--out", out.string()});
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

TEST(TernGradFigure5, RefusesFlagsThatChangeNothing) {
  const Outcome outcome = run_program({TERN_REPRODUCE, "terngrad-fig5", "--workers", "2,4"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(
      outcome.err.find("terngrad-fig5 is computed: --data, --data-dir, --iterations, --seeds and --workers would"),
      std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace tern
