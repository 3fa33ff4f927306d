#include "tern/data/cifar10.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tern/core/error.h"
#include "tests/data/packed_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

constexpr size_t kRecord = 3073, kExample = 3072, kRecords = 10000;

/// Records whose labels and pixels depend on batch number, record and place.
Bytes batch(size_t records, size_t number) {
  Bytes bytes(records * kRecord);
  for (size_t i = 0; i < records; ++i) {
    uint8_t* record = &bytes[i * kRecord];
    record[0] = static_cast<uint8_t>((i + number) % 10);
    for (size_t place : {size_t{0}, size_t{1}, size_t{33}, i % 1024})
      for (size_t channel = 0; channel < 3; ++channel)
        record[1 + place + 1024 * channel] = static_cast<uint8_t>(place + 7 * i + 50 * channel + number);
  }
  return bytes;
}

/// Expects that example `index` of `data` is record `i` of batch `number`, as `batch` made it.
void expect_example(const MemoryDataset& data, int64_t index, size_t i, size_t number) {
  Bytes pixels(kExample);
  EXPECT_EQ(data.read(index, pixels), static_cast<int64_t>((i + number) % 10)) << index;
  for (size_t place : {size_t{0}, size_t{1}, size_t{33}})
    for (size_t channel = 0; channel < 3; ++channel)
      EXPECT_EQ(pixels[3 * place + channel], static_cast<uint8_t>(place + 7 * i + 50 * channel + number)) << index;
}

std::string read_message(const Bytes& file, size_t records) {
  Bytes pixels(records * kExample), labels(records);
  return message_of<InputError>([&] { read_cifar10_batch(*open_source("x.bin", file), pixels, labels); });
}

TEST(Cifar10, SaysWhatIsWrongWithABatchAndWhere) {
  const Bytes good = batch(3, 0);
  EXPECT_EQ(read_message(good, 3), "");
  EXPECT_EQ(read_message(cut(good, 5000), 3), "x.bin: truncated: data end at offset 5000, 3 examples have 9219 bytes");
  // A whole number of records can also be too few.
  EXPECT_EQ(read_message(good, 4), "x.bin: truncated: data end at offset 9219, 4 examples have 12292 bytes");
  EXPECT_EQ(read_message(good, 2), "x.bin: trailing bytes at offset 6146, where 2 examples end");
  Bytes wrong = good;
  wrong[2 * kRecord] = 10;
  EXPECT_EQ(read_message(wrong, 3), "x.bin: label 10 of example 2 at offset 6146, expected 0 to 9");
  EXPECT_EQ(read_message({}, 3), "x.bin: truncated: data end at offset 0, 3 examples have 9219 bytes");
}

TEST(Cifar10, ReadsFilesPackedInAnyWayFromTheFolderOrItsOwn) {
  const TemporaryFolder folder;
  const auto own = folder.path() / "cifar-10-batches-bin";
  std::filesystem::create_directory(own);
  for (size_t number = 1; number <= 5; ++number) {
    const std::string name = "data_batch_" + std::to_string(number) + ".bin";
    const Bytes bytes = batch(kRecords, number);
    if (number == 1) write(own / name, bytes);
    if (number == 2) write(own / (name + ".gz"), gzip(bytes, 1));
    if (number == 3) write(own / (name + ".xz"), xz(bytes));
    if (number >= 4) write(folder.path() / name, bytes);
  }
  const MemoryDataset train = load_cifar10(folder.path(), Split::train);
  EXPECT_EQ(train.spec(), (ImageSpec{.channels = 3, .height = 32, .width = 32, .classes = 10}));
  ASSERT_EQ(train.size(), 50000);
  for (const int64_t index : {0, 9999, 10000, 25000, 49999})
    expect_example(train, index, static_cast<size_t>(index % 10000), static_cast<size_t>(index / 10000 + 1));
  EXPECT_EQ(message_of<InputError>([&] { load_cifar10(folder.path(), Split::test); }),
            "cifar10: neither " + folder.path().string() +
                " nor its cifar-10-batches-bin holds test_batch.bin, plain, .gz or .xz, nor is there "
                "cifar-10-binary.tar.gz");
}

TEST(Cifar10, ReadsTheArchiveWhateverTheOrderOfItsFiles) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cifar-10-binary.tar.gz";
  std::vector<std::pair<std::string, Bytes>> files = {{"cifar-10-batches-bin/", {}},
                                                      {"cifar-10-batches-bin/readme.html", {1, 2, 3}}};
  for (const size_t number : {4, 1, 5, 3, 2})
    files.emplace_back("cifar-10-batches-bin/data_batch_" + std::to_string(number) + ".bin", batch(kRecords, number));
  write(path, gzip(tar(files), 1));
  const MemoryDataset train = load_cifar10(folder.path(), Split::train);
  for (const int64_t index : {0, 9999, 10000, 25000, 49999})
    expect_example(train, index, static_cast<size_t>(index % 10000), static_cast<size_t>(index / 10000 + 1));
  EXPECT_EQ(message_of<InputError>([&] { load_cifar10(folder.path(), Split::test); }),
            path.string() + ": holds no cifar-10-batches-bin/test_batch.bin");
}

TEST(Cifar10, NamesAFolderThatIsNone) {
  EXPECT_EQ(message_of<InputError>([] { load_cifar10("/no/such", Split::train); }),
            "cifar10: /no/such is not a folder");
}

TEST(Cifar10, ReadsTheRealFiles) {
  const char* data = std::getenv("TERN_TEST_DATA");
  if (!data) GTEST_SKIP() << "TERN_TEST_DATA does not name a folder with cifar10/ in it";
  const auto folder = std::filesystem::path(data) / "cifar10";
  const auto train = load_cifar10(folder, Split::train), test = load_cifar10(folder, Split::test);
  ASSERT_EQ(train.size(), 50000);
  ASSERT_EQ(test.size(), 10000);
  Bytes pixels(kExample);
  std::vector<int64_t> train_labels, test_labels;
  for (int64_t i = 0; i < 10; ++i) {
    train_labels.push_back(train.read(i, pixels));
    test_labels.push_back(test.read(i, pixels));
  }
  EXPECT_EQ(train_labels, (std::vector<int64_t>{6, 9, 9, 4, 1, 1, 2, 7, 8, 3}));
  EXPECT_EQ(test_labels, (std::vector<int64_t>{3, 8, 8, 0, 6, 6, 1, 6, 3, 1}));
  train.read(0, pixels);
  Bytes reds;
  for (size_t i = 0; i < 5; ++i) reds.push_back(pixels[3 * i]);
  EXPECT_EQ(reds, (Bytes{59, 43, 50, 68, 98}));
}

}  // namespace
}  // namespace tern
