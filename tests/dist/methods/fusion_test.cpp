#include "tern/dist/methods/averaging.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

const std::vector<AveragedTensor> kTensors = {{"conv.weight", 500}, {"conv.bias", 20},    {"fc1.weight", 400000},
                                              {"fc1.bias", 500},    {"fc2.weight", 5000}, {"fc2.bias", 10},
                                              {"mean", 20, false}};

using Members = std::vector<std::vector<size_t>>;

/// The members of the messages that are coded, or of those that are not.
Members messages(const FusionOptions& options, bool coded) {
  Members members;
  for (const FusedMessage& message : fuse(kTensors, options))
    if (message.coded == coded) members.push_back(message.members);
  return members;
}

TEST(Fusion, FillsMessagesFromTheEnd) {
  EXPECT_EQ(messages({}, true), (Members{{5, 4, 3, 2}, {1, 0}}));
  EXPECT_EQ(messages({}, false), (Members{{6}}));
  EXPECT_EQ(messages({.fusion_bytes = 1}, true), (Members{{5}, {4}, {3}, {2}, {1}, {0}}));
  EXPECT_EQ(messages({.fusion_bytes = int64_t{1} << 30}, true), (Members{{5, 4, 3, 2, 1, 0}}));
}

TEST(Fusion, KeepsSmallAndNamedTensorsApart) {
  EXPECT_EQ(messages({.min_compress = 501}, true), (Members{{4, 2}}));
  EXPECT_EQ(messages({.min_compress = 501}, false), (Members{{6, 5, 3, 1, 0}}));
  EXPECT_EQ(messages({.keep_float = "fc?.weight"}, false), (Members{{6, 4, 2}}));
}

TEST(Fusion, SaysThatAPatternMatchesNothing) {
  EXPECT_EQ(message_of<InputError>([] { fuse(kTensors, {.keep_float = "fc3.*"}); }),
            "keep-float 'fc3.*' matches none of the model's parameters; the last is 'mean'");
}

}  // namespace
}  // namespace tern::test
