#include <gtest/gtest.h>

#include <cstdlib>

#include "tern/kernels/cuda/engine.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace tern::cuda {
namespace {

const Engine kPlain{.index = 3, .knobs = {}};
const Engine kTurned{.index = 17, .knobs = {{2, 1}, {14, 0}, {5, -1}}};

TEST(CudnnEngineText, ReadsBack) {
  for (const Engine& engine : {kPlain, kTurned}) EXPECT_EQ(parse_engine(to_string(engine)), engine);
  for (const char* text : {"", "engine", "engine x", "engine 3 ", "engine 3 2", "engine 3 2=", "engine 3 2=1x"})
    EXPECT_FALSE(parse_engine(text)) << text;
}

TEST(CudnnEngineFile, KeepsWhatSeveralProcessesAdd) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "below" / "engines.txt";
  EngineFile one(path), other(path);
  EXPECT_EQ(one.find("a"), nullptr);
  one.add("conv2d x [1, 2]", kPlain);
  other.add("conv2d x [3, 4]", kTurned);
  const EngineFile third(path);
  ASSERT_NE(third.find("conv2d x [1, 2]"), nullptr);
  EXPECT_EQ(*third.find("conv2d x [1, 2]"), kPlain);
  ASSERT_NE(third.find("conv2d x [3, 4]"), nullptr);
  EXPECT_EQ(*third.find("conv2d x [3, 4]"), kTurned);
}

TEST(CudnnEngineFile, LeavesOutWhatIsNoEngine) {
  const TemporaryFolder folder;
  write_file(folder.path() / "engines.txt", "no key\na: engine\n\nb: engine 3\nc: engine 4 half a li");
  const EngineFile file(folder.path() / "engines.txt");
  EXPECT_EQ(file.find("a"), nullptr);
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(*file.find("b"), kPlain);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(CudnnEngineFile, IsDoneWithoutWhereItCannotBeWritten) {
  EngineFile file("/proc/none/engines.txt");
  file.add("a", kPlain);
  ASSERT_NE(file.find("a"), nullptr) << "it holds for this process";
}

TEST(CudnnEngineFile, StandsInTheCacheByDeviceAndVersions) {
  setenv("TERN_CACHE", "/cache", 1);
  EXPECT_EQ(engine_file_path("NVIDIA H200", 91900, 13000), "/cache/engines-NVIDIA_H200-cudnn-91900-driver-13000.txt");
  unsetenv("TERN_CACHE");
}

}  // namespace
}  // namespace tern::cuda
