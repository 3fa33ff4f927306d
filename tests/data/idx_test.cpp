#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "tern/core/error.h"
#include "tern/data/mnist.h"
#include "tests/data/packed_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

Bytes idx(uint32_t magic, const std::vector<uint32_t>& extents, const Bytes& values) {
  Bytes bytes;
  const auto append = [&](uint32_t word) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<uint8_t>(word >> shift));
  };
  append(magic);
  std::ranges::for_each(extents, append);
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

Bytes images(uint32_t count) {
  Bytes values(count * 784);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * i % 251);
  return idx(0x803, {count, 28, 28}, values);
}

Bytes labels(const Bytes& values) { return idx(0x801, {static_cast<uint32_t>(values.size())}, values); }

TEST(Idx, ReadsPlainAndGzipByContent) {
  const TemporaryFolder folder;
  for (const auto& bytes : {images(3), gzip(images(3))}) {
    write(folder.path() / "images", bytes);
    const IdxArray array = read_idx(folder.path() / "images", 3);
    EXPECT_EQ(array.extents, (std::vector<int64_t>{3, 28, 28}));
    EXPECT_EQ(with(cut(images(3), 16), array.values), images(3));
  }
}

TEST(Idx, ReadsGzipStreamsInARow) {
  const TemporaryFolder folder;
  const Bytes whole = images(3);
  write(folder.path() / "images", with(gzip(cut(whole, 1000)), gzip({whole.begin() + 1000, whole.end()})));
  EXPECT_EQ(with(cut(whole, 16), read_idx(folder.path() / "images", 3).values), whole);
}

TEST(Idx, ReadsMoreThanItsFirstRead) {
  const TemporaryFolder folder;
  write(folder.path() / "images", gzip(images(3000)));
  EXPECT_EQ(with(cut(images(3000), 16), read_idx(folder.path() / "images", 3).values), images(3000));
}

struct BadFile {
  std::string name;
  Bytes bytes;
  std::string message;  // the part after the file's name
};

class BadIdx : public testing::TestWithParam<BadFile> {};

TEST_P(BadIdx, IsAnInputErrorThatSaysWhereAndWhat) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "images";
  write(path, GetParam().bytes);
  EXPECT_EQ(message_of<InputError>([&] { read_idx(path, 3); }), path.string() + ": " + GetParam().message);
}

const Bytes kPacked = gzip(images(2));

INSTANTIATE_TEST_SUITE_P(
    Files, BadIdx,
    testing::Values(
        BadFile{"Empty", {}, "truncated: 0 bytes, the header alone has 16"},
        BadFile{"CutInTheHeader", cut(images(2), 9), "truncated: 9 bytes, the header alone has 16"},
        BadFile{"CutInTheData", cut(images(2), 1000),
                "truncated: the header declares 2x28x28 bytes at offset 4, the file has room for 984"},
        BadFile{"CutByOneByte", cut(images(2), 16 + 2 * 784 - 1),
                "truncated: the header declares 2x28x28 bytes at offset 4, the file has room for 1567"},
        BadFile{"TrailingByte", with(images(2), {0}),
                "trailing bytes at offset 1584, where the header says that the data end"},
        BadFile{"LabelsForImages", labels(Bytes(20)),
                "magic number 0x00000801 at offset 0, expected 0x00000803 (unsigned bytes, rank 3)"},
        BadFile{"AbsurdSize", idx(0x803, {0xffffffff, 0xffffffff, 0xffffffff}, {1}),
                "truncated: the header declares 4294967295x4294967295x4294967295 bytes at offset 4, the file has room "
                "for 1"},
        BadFile{"NoImages", idx(0x803, {0, 28, 28}, {}), "an extent of 0 at offset 4, expected 1 or more"},
        BadFile{"GzipTrailingByteInside", gzip(with(images(2), {0})),
                "trailing bytes at offset 1584, where the header says that the data end"},
        BadFile{"GzipTruncatedInside", gzip(cut(images(2), 1583)),
                "truncated: data end at offset 1583, the header declares 1584 bytes"},
        BadFile{"GzipCut", cut(kPacked, kPacked.size() / 2),
                "truncated: the gzip stream goes on after the file's " + std::to_string(kPacked.size() / 2) + " bytes"},
        BadFile{"GzipCutInItsChecksum", cut(kPacked, kPacked.size() - 6),
                "truncated: the gzip stream goes on after the file's " + std::to_string(kPacked.size() - 6) + " bytes"},
        BadFile{"GzipTrailingBytes", with(kPacked, {1, 2, 3}),
                "3 bytes follow the end of the gzip stream at offset " + std::to_string(kPacked.size()) +
                    ", expected none"},
        BadFile{"GzipChecksumFlipped", flipped(kPacked, kPacked.size() - 7),
                "damaged gzip stream before offset " + std::to_string(kPacked.size() - 4) + ": incorrect data check"}),
    [](const auto& file) { return file.param.name; });

TEST(Idx, NoticesEveryFlippedBitOfAGzipStream) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "images.gz";
  constexpr size_t kGzipHeader = 10;
  for (size_t byte = kGzipHeader; byte < kPacked.size(); ++byte) {
    write(path, flipped(kPacked, byte));
    EXPECT_NE(message_of<InputError>([&] { read_idx(path, 3); }), "") << "byte " << byte;
  }
}

TEST(Idx, NamesAFileThatIsNotThere) {
  EXPECT_EQ(message_of<InputError>([] { read_idx("/no/such/file", 3); }),
            "/no/such/file: cannot be read: No such file or directory");
}

TEST(Mnist, ReadsEverySpellingOfItsFiles) {
  for (const std::string joint : {"-", "."}) {
    for (const bool packed : {false, true}) {
      const TemporaryFolder folder;
      const auto put = [&](const std::string& stem, const std::string& kind, const Bytes& bytes) {
        write(folder.path() / (stem + joint + kind + (packed ? ".gz" : "")), packed ? gzip(bytes) : bytes);
      };
      put("train-images", "idx3-ubyte", images(3));
      put("train-labels", "idx1-ubyte", labels({7, 0, 9}));
      put("t10k-images", "idx3-ubyte", images(2));
      put("t10k-labels", "idx1-ubyte", labels({1, 2}));
      const auto train = load_mnist(folder.path(), Split::train);
      EXPECT_EQ(train.size(), 3);
      EXPECT_EQ(train.spec(), (ImageSpec{.channels = 1, .height = 28, .width = 28, .classes = 10}));
      Bytes pixels(784);
      EXPECT_EQ(train.read(2, pixels), 9);
      EXPECT_EQ(with(cut(images(3), 16 + 2 * 784), pixels), images(3));
      EXPECT_EQ(load_mnist(folder.path(), Split::test).size(), 2);
    }
  }
}

TEST(Mnist, NamesWhatItLookedFor) {
  const TemporaryFolder folder;
  const auto name = folder.path().string();
  EXPECT_EQ(message_of<InputError>([&] { load_mnist(folder.path(), Split::train); }),
            "mnist: nothing in " + name +
                " is called train-images-idx3-ubyte, train-images-idx3-ubyte.gz, train-images.idx3-ubyte, "
                "train-images.idx3-ubyte.gz");
  EXPECT_EQ(message_of<InputError>([&] { load_mnist(folder.path() / "x", Split::train); }),
            "mnist: " + name + "/x is not a folder");
}

TEST(Mnist, RefusesFilesThatDoNotBelongTogether) {
  const TemporaryFolder folder;
  const auto images_path = folder.path() / "train-images-idx3-ubyte",
             labels_path = folder.path() / "train-labels-idx1-ubyte";
  const auto message = [&] { return message_of<InputError>([&] { load_mnist(folder.path(), Split::train); }); };
  write(images_path, images(3));
  write(labels_path, labels({1, 2}));
  EXPECT_EQ(message(), labels_path.string() + ": 2 labels at offset 4, but " + images_path.string() + " has 3 images");
  write(labels_path, labels({1, 10, 2}));
  EXPECT_EQ(message(), labels_path.string() + ": label 10 of example 1 at offset 9, expected 0 to 9");
  write(images_path, idx(0x803, {3, 32, 32}, Bytes(3 * 32 * 32)));
  EXPECT_EQ(message(), images_path.string() + ": images of 32x32 at offset 8, expected 28x28");
}

TEST(Mnist, ReadsTheRealFiles) {
  const char* data = std::getenv("TERN_TEST_DATA");
  if (!data) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with mnist/ in it";
  const auto folder = std::filesystem::path(data) / "mnist";
  const auto train = load_mnist(folder, Split::train), test = load_mnist(folder, Split::test);
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(test.size(), 10000);
  Bytes pixels(784);
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 5; ++i) first.push_back(train.read(i, pixels));
  EXPECT_EQ(first, (std::vector<int64_t>{5, 0, 4, 1, 9}));
}

}  // namespace
}  // namespace tern
