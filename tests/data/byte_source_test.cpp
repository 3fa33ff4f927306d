#include "tern/data/byte_source.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tern/data/tar.h"
#include "tests/data/packed_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

Bytes numbers(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * i % 251);
  return bytes;
}

/// Reads the whole source, in portions of `portion` bytes.
Bytes read_all(ByteSource& source, size_t portion) {
  Bytes all, bytes(portion);
  for (size_t count = portion; count == portion;) {
    count = source.read(bytes);
    all.insert(all.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

TEST(ByteSource, UnpacksByContentInPortionsOfAnySize) {
  const Bytes bytes = numbers(10000);
  for (const Bytes& file :
       {bytes, gzip(bytes), xz(bytes), with(xz(cut(bytes, 4321)), xz({bytes.begin() + 4321, bytes.end()}))})
    for (const size_t portion : {7, 4096, 20000}) {
      const auto source = open_source("file", file);
      EXPECT_GE(source->most_bytes(), bytes.size());
      EXPECT_EQ(read_all(*source, portion), bytes);
    }
}

TEST(FindOneFile, CountsTheFilesWithOneOfTheEndings) {
  const TemporaryFolder folder;
  const auto find = [&] { return find_one_file(folder.path(), {".a", ".a.gz"}, "found ", " files"); };
  EXPECT_EQ(message_of<InputError>(find), "found 0 files");
  write(folder.path() / "x.a", numbers(1));
  write(folder.path() / "x.b", numbers(1));
  EXPECT_EQ(find(), folder.path() / "x.a");
  write(folder.path() / "y.a.gz", numbers(1));
  EXPECT_EQ(message_of<InputError>(find), "found 2 files");
}

TEST(ByteSource, ItsBoundHoldsForWhatPacksBest) {
  const Bytes zeros(50'000'000);
  for (const Bytes& file : {gzip(zeros), xz(zeros)}) {
    const auto source = open_source("file", file);
    EXPECT_GE(source->most_bytes(), zeros.size());
    EXPECT_LT(source->most_bytes(), 2 * zeros.size());
  }
}

TEST(Xz, SaysWhatIsWrongAndWhere) {
  const Bytes packed = xz(numbers(3000));
  const auto message = [](const Bytes& file) {
    return message_of<InputError>([&] { read_all(*open_source("a.xz", file), 1000); });
  };
  EXPECT_EQ(message(packed), "");
  EXPECT_EQ(message(cut(packed, 100)), "a.xz: truncated: the xz stream goes on after the file's 100 bytes");
  EXPECT_EQ(message(cut(packed, 7)), "a.xz: truncated: the xz stream goes on after the file's 7 bytes");
  EXPECT_EQ(message(with(packed, Bytes(12, 1))), "a.xz: damaged xz stream before offset " +
                                                     std::to_string(packed.size() + 12) +
                                                     ": its bytes or checksums are wrong");
  for (size_t byte = 6; byte < packed.size(); ++byte) EXPECT_NE(message(flipped(packed, byte)), "") << "byte " << byte;
}

TEST(Tar, GivesItsFilesInTheirOrder) {
  const Bytes bytes = numbers(5000), archive = tar({{"d/", {}}, {"d/b", bytes}, {"d/empty", {}}, {"a", {1, 2}}});
  for (const Bytes& file : {archive, gzip(archive), xz(archive)}) {
    TarArchive files(open_source("x.tar", file));
    const auto b = files.next();
    EXPECT_EQ(b->name(), "x.tar: d/b");
    EXPECT_EQ(b->most_bytes(), bytes.size());
    EXPECT_EQ(read_all(*b, 777), bytes);
    EXPECT_EQ(read_all(*files.next(), 10), Bytes());
    const auto skipped = files.next();
    EXPECT_EQ(skipped->name(), "x.tar: a");
    EXPECT_EQ(files.next(), nullptr);
  }
}

TEST(Tar, SaysWhatIsWrong) {
  const Bytes archive = tar({{"a", numbers(5000)}, {"b", numbers(100)}}), packed = gzip(archive);
  const auto message = [](const Bytes& file) {
    return message_of<InputError>([&] {
      TarArchive files(open_source("x.tar", file));
      while (files.next()) continue;
    });
  };
  EXPECT_EQ(message(archive), "");
  EXPECT_EQ(message(numbers(2000)), "x.tar: damaged tar archive: Unrecognized archive format");
  EXPECT_TRUE(message(cut(archive, 3000)).starts_with("x.tar: damaged tar archive: Truncated input file"))
      << message(cut(archive, 3000));
  EXPECT_EQ(message(flipped(archive, 5632 + 3)), "x.tar: damaged tar archive: Damaged tar archive");
  EXPECT_EQ(message(cut(packed, packed.size() / 2)), "x.tar: truncated: the gzip stream goes on after the file's " +
                                                         std::to_string(packed.size() / 2) + " bytes");
  // The checksum of the gzip stream comes after the last file.
  EXPECT_TRUE(message(flipped(packed, packed.size() - 7)).ends_with("incorrect data check"));
}

}  // namespace
}  // namespace tern
