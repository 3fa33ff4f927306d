#include "tern/data/image_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "tern/core/error.h"
#include "tern/data/image.h"
#include "tern/data/loader.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

constexpr int kSide = 16;

class ImageFolders : public testing::Test {
 protected:
  static constexpr int kPictures = 8;

  /// Writes four pictures for each of two classes. They have different sizes.
  ImageFolders() {
    for (int i = 0; i < kPictures; ++i) write_picture(i, test_picture(20 + i, 30 - i, i));
  }

  std::filesystem::path place(int i) const { return folder_.path() / "data" / (i < 4 ? "a" : "b") / join({i, ".png"}); }
  void write_picture(int i, const Image& image) const { write_bytes(i, png_bytes(image)); }
  void write_bytes(int i, const std::string& bytes) const {
    std::filesystem::create_directories(place(i).parent_path());
    write_file(place(i), bytes);
  }
  ImageList list() const {
    ImageList list{.classes = {"a", "b"}, .files = {}};
    for (int i = 0; i < kPictures; ++i)
      list.files.push_back({.path = place(i),
                            .label = i / 4,
                            .bytes = std::filesystem::file_size(place(i)),
                            .modified_ns = std::filesystem::last_write_time(place(i)).time_since_epoch().count()});
    return list;
  }
  static std::vector<uint8_t> read(const ImageDataset& data, int64_t index, int64_t label) {
    std::vector<uint8_t> pixels(static_cast<size_t>(data.spec().numel()));
    EXPECT_EQ(data.read(index, pixels), label) << index;
    return pixels;
  }
  static std::vector<std::vector<uint8_t>> read_all(const ImageDataset& data) {
    std::vector<std::vector<uint8_t>> all;
    for (int64_t i = 0; i < data.size(); ++i) {
      all.emplace_back(static_cast<size_t>(data.spec().numel()));
      all.back().push_back(static_cast<uint8_t>(data.read(i, std::span(all.back()))));
    }
    return all;
  }
  std::filesystem::path cache() const { return folder_.path() / "cache"; }
  /// Reads all pictures through a cache. Expects that this call makes the cache if `made` is true, and finds it if not.
  std::vector<std::vector<uint8_t>> read_cached(bool made, const ImageFolderOptions& options = {.side = kSide}) const {
    ImageFolder data(list(), options);
    bool began = false;
    data.use_cache(cache(), [&](auto) { began = true; });
    EXPECT_EQ(began, made);
    return read_all(data);
  }

  TemporaryFolder folder_;
};

TEST_F(ImageFolders, GivesTheMiddleOrAllOfAPicture) {
  const ImageFolder cropped(list(), {.side = kSide}), squashed(list(), {.side = kSide, .fit = Fit::squash});
  EXPECT_EQ(cropped.spec(), (ImageSpec{.channels = 3, .height = kSide, .width = kSide, .classes = 2}));
  const Image square = test_picture(25, 25, 5);
  EXPECT_EQ(read(cropped, 5, 1), resize(square.view(), kSide, kSide).values) << "a square has no more than its middle";
  const Image wide = test_picture(27, 23, 7);
  EXPECT_EQ(read(squashed, 7, 1), resize(wide.view(), kSide, kSide).values);
  EXPECT_EQ(read(cropped, 7, 1), resize(middle(wide.view(), 1, 1), kSide, kSide).values);
  EXPECT_NE(cropped.fingerprint(), squashed.fingerprint());
}

TEST_F(ImageFolders, TurnsWhatACameraHeldAnotherWay) {
  const Image seen = test_picture(64, 64, 1);
  write_bytes(2, jpeg_bytes(seen, 100));
  const auto straight = read(ImageFolder(list(), {.side = kSide}), 2, 0);
  write_bytes(2, with_orientation(jpeg_bytes(upright(seen.view(), 8), 100), 6));
  const auto turned = read(ImageFolder(list(), {.side = kSide}), 2, 0);
  for (size_t i = 0; i < straight.size(); ++i) EXPECT_NEAR(straight[i], turned[i], 6) << i;
}

TEST_F(ImageFolders, LetsTheNextPictureStandInForOneThatCannotBeRead) {
  write_bytes(3, "no picture");
  write_bytes(7, "");
  const ImageFolder data(list(), {.side = kSide});
  EXPECT_TRUE(data.unread().empty()) << "none was looked at";
  EXPECT_EQ(read(data, 3, 1), read(data, 4, 1));
  EXPECT_EQ(read(data, 7, 0), read(data, 0, 0)) << "behind the last comes the first";
  read(data, 3, 1);
  const std::vector<std::string> unread = data.unread();
  ASSERT_EQ(unread.size(), 2u);
  EXPECT_TRUE(unread[0].starts_with(place(3).string() + ": found no whole image (")) << unread[0];
}

TEST_F(ImageFolders, ShowsNoControlBytesOfAName) {
  ImageList named = list();
  named.files[3].path = folder_.path() / "nl\n\x1b[31mred.jpg";
  const ImageFolder data(named, {.side = kSide});
  read(data, 3, 1);
  ASSERT_EQ(data.unread().size(), 1u);
  EXPECT_TRUE(data.unread()[0].starts_with((folder_.path() / "nl\\n\\x1b[31mred.jpg: ").string())) << data.unread()[0];
}

TEST_F(ImageFolders, IsBadInputWhereNothingCanBeRead) {
  for (int i = 0; i < kPictures; ++i) write_bytes(i, "no picture");
  const ImageFolder data(list(), {.side = kSide});
  std::vector<uint8_t> pixels(kSide * kSide * 3);
  const std::string message = message_of<InputError>([&] { data.read(5, pixels); });
  EXPECT_TRUE(message.starts_with("images: none of 8 files can be read: " + place(0).string() + ": found")) << message;
}

TEST_F(ImageFolders, GivesTheSameBatchesByAnyNumberOfThreads) {
  write_bytes(6, "no picture");
  const ImageFolder data(list(), {.side = kSide});
  std::vector<std::vector<float>> batches;
  for (const int threads : {0, 3}) {
    DataLoader loader(data, {.size = data.size(), .shuffle = true}, {.batch_size = 3, .threads = threads});
    auto& all = batches.emplace_back();
    while (const auto batch = loader.next()) {
      const auto images = (*batch)["image"].span<float>();
      all.insert(all.end(), images.begin(), images.end());
    }
  }
  EXPECT_EQ(batches[0], batches[1]);
}

TEST_F(ImageFolders, ACacheHoldsTheSameExamples) {
  write_bytes(3, "no picture");
  const auto expected = read_all(ImageFolder(list(), {.side = kSide}));
  EXPECT_EQ(read_cached(true), expected);
  EXPECT_EQ(read_cached(false), expected);
  ImageFolder data(list(), {.side = kSide});
  data.use_cache(cache(), [](auto) {});
  write_bytes(0, "gone");
  EXPECT_EQ(read_all(data), expected) << "and needs no files";
  EXPECT_EQ(data.unread().size(), 1u) << "but tells of what it lacks";
}

TEST_F(ImageFolders, ACacheOfOtherFilesIsMadeAnew) {
  read_cached(true);
  write_picture(5, test_picture(20, 20, 50));
  EXPECT_EQ(read_cached(true), read_all(ImageFolder(list(), {.side = kSide})));
  const auto later = std::filesystem::last_write_time(place(5)) + std::chrono::seconds(1);
  std::filesystem::last_write_time(place(5), later);
  read_cached(true);
  read_cached(true, {.side = kSide, .fit = Fit::squash});
  read_cached(true, {.side = 8});
  read_cached(false, {.side = 8});
}

TEST_F(ImageFolders, ADamagedCacheIsMadeAnew) {
  const auto expected = read_cached(true);
  const std::string whole = read_file(cache());
  for (size_t at = 0; at < 40 + 8 * kPictures; at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(cache(), damaged);
    EXPECT_EQ(read_cached(true), expected) << at;
  }
  for (const size_t size : {size_t{0}, size_t{39}, whole.size() / 2, whole.size() - 1}) {
    write_file(cache(), whole.substr(0, size));
    EXPECT_EQ(read_cached(true), expected) << size;
  }
  write_file(cache(), whole + "x");
  EXPECT_EQ(read_cached(true), expected);
}

TEST_F(ImageFolders, ACacheThatIsGivenUpLeavesNothing) {
  ImageList many = list();
  const auto few = many.files;
  while (many.files.size() < 512) many.files.insert(many.files.end(), few.begin(), few.end());
  ImageFolder data(many, {.side = 4});
  const auto until = [&](size_t last) {
    std::vector<size_t> heard;
    const std::string message = message_of<Error>([&] {
      data.use_cache(cache(), [&](std::optional<size_t> done) {
        heard.push_back(done.value());
        check(*done < last, "given up");
      });
    });
    EXPECT_EQ(message, last == 256 ? "given up" : "");
    return heard;
  };
  EXPECT_EQ(until(256), (std::vector<size_t>{0, 256}));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_TRUE(entry.path().filename() == "data" || entry.path().extension() == ".lock") << entry.path();
  EXPECT_EQ(until(512), (std::vector<size_t>{0, 256})) << "made from the start";
  EXPECT_EQ(until(512), std::vector<size_t>{}) << "and kept";
}

TEST_F(ImageFolders, TellsThatAnotherProcessMakesTheCache) {
  const int lock = ::open((cache().string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  ImageFolder data(list(), {.side = kSide});
  const auto give_up = [](std::optional<size_t> done) { check(done.has_value(), "another makes it"); };
  EXPECT_EQ(message_of<Error>([&] { data.use_cache(cache(), give_up); }), "another makes it");
  std::vector<std::optional<size_t>> heard;
  data.use_cache(cache(), [&](std::optional<size_t> done) {
    heard.push_back(done);
    if (heard.size() == 2) ::close(lock);
  });
  EXPECT_EQ(heard, (std::vector<std::optional<size_t>>{{}, {}, 0}));
}

TEST_F(ImageFolders, NamesTheCacheWhosePixelsWereOverwritten) {
  const auto expected = read_cached(true);
  std::string damaged = read_file(cache());
  const size_t at = damaged.size() - 2 * kSide * kSide * 3 - 1;  // the last byte of picture 5
  damaged[at] = static_cast<char>(damaged[at] ^ 1);
  write_file(cache(), damaged);
  ImageFolder data(list(), {.side = kSide});
  data.use_cache(cache(), [](auto) { FAIL() << "its header is whole"; });
  EXPECT_EQ(message_of<InputError>([&] { read(data, 5, 1); }),
            cache().string() +
                ": the pixels of image 5 are not those that were written; remove this file, and the next "
                "run makes it anew");
  read(data, 4, 1);
  read(data, 6, 1);
  std::filesystem::remove(cache());
  EXPECT_EQ(read_cached(true), expected);
}

TEST_F(ImageFolders, ACacheThatCannotBeWrittenIsBadInput) {
  ImageFolder data(list(), {.side = kSide});
  const std::string path = folder_.path() / "none" / "cache";
  EXPECT_EQ(message_of<InputError>([&] { data.use_cache(path, [](auto) {}); }),
            path + ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace tern
