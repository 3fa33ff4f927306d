#include "tern/dist/methods/averaging.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/dist/comm/transports.h"
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

/// The means of three tensors, of which the first is a difference of filters. Both of its tensors are in `format`.
std::vector<std::vector<float>> means_in(MemoryFormat format, const std::string& codec) {
  std::vector<std::vector<float>> found;
  const auto errors = with_communicators(make_in_process(2), [&](Communicator& c) {
    const auto seed = static_cast<uint64_t>(c.rank());
    const Shape filters{4, 3, 2, 5};
    Averaging averaging(c, {{"filters", filters.numel()}, {"others", filters.numel()}, {"bias", 4}}, {.codec = codec});
    averaging.begin(0);
    averaging.give(2, gaussian({4}, seed));
    averaging.give(1, gaussian(filters, 10 + seed).to(format));
    averaging.give_difference(0, gaussian(filters, 20 + seed).to(format), gaussian(filters, 30).to(format));
    for (const Tensor& mean : averaging.finish())
      if (c.rank() == 0) found.push_back(mean.to_vector<float>());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return found;
}

TEST(Averaging, CodesTensorsInRowMajorOrder) {
  for (const char* codec : {"none", "ternary", "hadamard", "error-feedback:topk:ratio=0.2"})
    EXPECT_EQ(means_in(MemoryFormat::channels_last, codec), means_in(MemoryFormat::row_major, codec)) << codec;
}

}  // namespace
}  // namespace tern::test
