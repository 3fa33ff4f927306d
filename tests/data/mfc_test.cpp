#include "tern/data/mfc.h"

#include <gtest/gtest.h>

#include <limits>

#include "tern/core/error.h"
#include "tests/data/mfc_bytes.h"
#include "tests/data/packed_bytes.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

TEST(Mfc, HasItsFramesAsRows) {
  const Tensor frames = parse_mfc(mfc({1, -2.5f, 3e-8f, 4, 5, 6}), "x.mfc", 3);
  EXPECT_EQ(frames.shape(), (Shape{2, 3}));
  EXPECT_EQ(frames.to_vector<float>(), (std::vector<float>{1, -2.5f, 3e-8f, 4, 5, 6}));
}

TEST(Mfc, ADamagedOneIsNamed) {
  const auto message = [](const Bytes& file) { return message_of<InputError>([&] { parse_mfc(file, "x.mfc", 3); }); };
  EXPECT_EQ(message({0, 0, 0}), "x.mfc: found 3 bytes, expected a count of 4 bytes and the numbers");
  EXPECT_EQ(message(mfc({})),
            "x.mfc: byte 0: found a count of 0 numbers, expected a multiple of 3 and one frame or more");
  EXPECT_EQ(message(mfc({1, 2})),
            "x.mfc: byte 0: found a count of 2 numbers, expected a multiple of 3 and one frame or more");
  EXPECT_EQ(message(cut(mfc({1, 2, 3}), 15)),
            "x.mfc: byte 0: found a count of 3 numbers, expected 2: the file has 11 bytes behind it");
  EXPECT_EQ(message(with(mfc({1, 2, 3}), {0, 0, 0, 0})),
            "x.mfc: byte 0: found a count of 3 numbers, expected 4: the file has 16 bytes behind it");
  Bytes little_endian = mfc({1, 2, 3});
  std::swap(little_endian[0], little_endian[3]);
  EXPECT_EQ(message(little_endian),
            "x.mfc: byte 0: found a count of 50331648 numbers, expected 3: the file has 12 bytes behind it");
  EXPECT_EQ(message({255, 255, 255, 255}),
            "x.mfc: byte 0: found a count of -1 numbers, expected 0: the file has 0 bytes behind it");
  EXPECT_EQ(message(mfc({1, std::numeric_limits<float>::infinity(), 3})),
            "x.mfc: byte 8: found inf, expected a number within ±1e6");
  EXPECT_EQ(message(mfc({std::numeric_limits<float>::quiet_NaN(), 2, 3})),
            "x.mfc: byte 4: found nan, expected a number within ±1e6");
  EXPECT_EQ(message(mfc({1, 2, -3e38f})), "x.mfc: byte 12: found -3e+38, expected a number within ±1e6");
  EXPECT_EQ(message(mfc({1, 2, -1e6f})), "");
}

}  // namespace
}  // namespace tern
