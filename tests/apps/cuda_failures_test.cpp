#include <utility>

#include "tern/core/device.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

struct Lack {
  std::pair<const char*, const char*> emulated;  ///< an environment variable and its value
  std::vector<std::string> flags;
  std::vector<std::string> said;  // parts of one sentence in stderr
};

/// Asks a CUDA device for something that it does not have.
class CudaFailures : public TrainLenet {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
  void expect_said(const Lack& lack) const {
    std::vector<std::string> words = {built_program("train_mlp"),
                                      "--data",
                                      "mnist",
                                      "--data-dir",
                                      data_.string(),
                                      "--threads",
                                      "1",
                                      "--batch-size",
                                      "16"};
    words.insert(words.end(), lack.flags.begin(), lack.flags.end());
    const auto [variable, value] = lack.emulated;
    setenv(variable, value, 1);
    const Outcome outcome = run_program(words);
    unsetenv(variable);
    SCOPED_TRACE(outcome.err);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.err.starts_with("train_mlp: "));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
    size_t at = 0;
    for (const std::string& part : lack.said) {
      at = outcome.err.find(part, at);
      ASSERT_NE(at, std::string::npos) << part;
    }
  }
};

class EmulatedCudaFailures : public CudaFailures {
 protected:
  void SetUp() override {
    const std::string why = test::why_no_cuda();
    const std::string name = why.empty() ? device_backend({DeviceType::cuda, 0}).name() : why;
    if (name != "emulated device") GTEST_SKIP() << "needs the emulated device, found: " << name;
  }
};

TEST_F(CudaFailures, ADeviceThatDoesNotExistIsASentence) {
  expect_said({{"TERN_EMULATED_LACK", "nothing"},
               {"--device", "cuda:15"},
               {"device cuda:15: this machine has ", ", counted from cuda:0"}});
}

TEST_F(EmulatedCudaFailures, EachIsASentence) {
  const std::vector<std::string> cuda = {"--device", "cuda"};
  const Lack table[] = {
      {{"TERN_EMULATED_LACK", "driver"}, cuda, {"device cuda:0: no NVIDIA driver is loaded on this machine"}},
      {{"TERN_EMULATED_LACK", "device"}, cuda, {"device cuda:0: CUDA finds none: "}},
      {{"TERN_EMULATED_LACK", "code"},
       cuda,
       {"device cuda:0: emulated device has compute capability 9.0, this build holds code for ",
        "; configure it with -DCMAKE_CUDA_ARCHITECTURES=90"}},
      {{"TERN_EMULATED_LACK", "nothing"},
       {"--device", "cuda:12"},
       {"device cuda:12: this machine has 12 devices, counted from cuda:0"}},
      {{"TERN_EMULATED_MEMORY", "3000000"},
       {"--device", "cuda", "--hidden", "4096"},
       {"device cuda:0: out of memory: ", " bytes were asked for (last operation: ", " are in use, ",
        " of 3000000 are free; a smaller batch needs less"}},
  };
  for (const Lack& lack : table) expect_said(lack);
}

}  // namespace
}  // namespace tern
