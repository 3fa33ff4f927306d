#include "tern/data/image_list.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

class ImageLists : public testing::Test {
 protected:
  std::filesystem::path place(const std::string& name = "") const { return name.empty() ? root() : root() / name; }
  const std::filesystem::path& root() const { return folder_.path(); }
  void add(const std::string& name, const std::string& bytes = "x") const {
    std::filesystem::create_directories(place(name).parent_path());
    write_file(place(name), bytes);
  }
  /// "PATH LABEL" of each file. Paths are relative to the folder.
  std::vector<std::string> files(Split split, const std::string& name = "") const {
    std::vector<std::string> found;
    for (const ImageFile& file : list_images(place(name), split).files)
      found.push_back(join({file.path.lexically_relative(root()).string(), " ", file.label}));
    return found;
  }
  std::string message(Split split = Split::train, const std::string& name = "") const {
    return message_of<InputError>([&] { list_images(place(name), split); });
  }

 private:
  TemporaryFolder folder_;
};

using Files = std::vector<std::string>;

TEST_F(ImageLists, SplitsInFoldersOfTheirOwn) {
  for (const char* name : {"train/cat/b.jpg", "train/cat/a.PNG", "train/ant/deep/er/c.Jpeg", "val/cat/v.bmp",
                           "test/cat/t.jpg", "train/cat/notes.txt", "train/cat/._b.jpg", "train/.git/x/y.jpg"})
    add(name);
  EXPECT_EQ(files(Split::train), (Files{"train/ant/deep/er/c.Jpeg 0", "train/cat/a.PNG 1", "train/cat/b.jpg 1"}));
  EXPECT_EQ(files(Split::test), Files{"val/cat/v.bmp 1"});
  EXPECT_EQ(list_image_classes(place()), (Files{"ant", "cat"}));
  std::filesystem::remove_all(place("val"));
  EXPECT_EQ(files(Split::test), Files{"test/cat/t.jpg 1"});
}

TEST_F(ImageLists, CountsALinkThatLeadsBackAsAPicture) {
  for (const char* name : {"train/a/1.jpg", "train/a/deep/2.jpg", "train/b/3.jpg", "elsewhere/4.jpg", "val/a/5.jpg"})
    add(name);
  const auto link = [&](const char* to, const char* name) { std::filesystem::create_symlink(to, place(name)); };
  link(".", "train/a/deep/around");
  link("..", "train/a/deep/up");
  link("..", "train/a/up");
  link("../..", "train/a/root");
  link("..", "elsewhere/up");
  link("itself", "train/a/itself");
  link("itself", "train/itself");
  link("nowhere", "train/a/none.jpg");
  link("nowhere", "train/a/none");
  link("../../elsewhere", "train/b/there");
  EXPECT_EQ(files(Split::train),
            (Files{"train/a/1.jpg 0", "train/a/deep/2.jpg 0", "train/a/deep/around 0", "train/a/deep/up 0",
                   "train/a/itself 0", "train/a/none.jpg 0", "train/a/root 0", "train/a/up 0", "train/b/3.jpg 1",
                   "train/b/there/4.jpg 1", "train/b/there/up 1"}));
}

TEST_F(ImageLists, SharesAFolderOfClassesByName) {
  for (int i = 0; i < 13; ++i) add(join({"b/", 10 + i, ".jpg"}));
  add("a/only.jpg");
  EXPECT_EQ(files(Split::test), (Files{"b/11.jpg 1", "b/21.jpg 1"}));
  const Files training = files(Split::train);
  EXPECT_EQ(training.size(), 12u);
  EXPECT_EQ(training.front(), "a/only.jpg 0");
}

TEST_F(ImageLists, TakesListsOfFiles) {
  for (const char* name : {"x/1.jpg", "x/2 of 2.jpg", "y/3.anything", "4.jpg"}) add(name, "1234");
  add("train.txt", "x/1.jpg 0\r\n\n  \nx/2 of 2.jpg\t1  \n" + place("y/3.anything").string() + " 1\n");
  add("val.txt", "4.jpg 1");
  EXPECT_EQ(files(Split::train), (Files{"x/1.jpg 0", "x/2 of 2.jpg 1", "y/3.anything 1"}));
  EXPECT_EQ(files(Split::test), Files{"4.jpg 1"});
  EXPECT_EQ(files(Split::test, "train.txt"), Files{"y/3.anything 1"}) << "a list alone is shared";
  EXPECT_EQ(list_image_classes(place()), (Files{"0", "1"}));
  const ImageFile file = list_images(place(), Split::test).files.front();
  EXPECT_EQ(file.bytes, 4u);
  EXPECT_GT(file.modified_ns, int64_t{1'600'000'000'000'000'000});
}

TEST_F(ImageLists, SaysWhatIsWrongWithAFolder) {
  const std::string root = place();
  EXPECT_EQ(message(Split::train, "none"), "images: " + root + "/none is neither a folder nor a list of files");
  EXPECT_EQ(message(), "images: " + root + " holds no folder, expected one for each class, with pictures");
  add("cat/a.jpg");
  EXPECT_EQ(message(), "images: " + root + " holds one class, 'cat', expected two or more");
  add("dog/notes.txt");
  EXPECT_EQ(message(),
            "images: " + root + "/dog holds no picture, expected .jpg, .jpeg, .png, .bmp, .gif, .pgm or .ppm files");
  add("dog/b.jpg");
  EXPECT_EQ(message(Split::train), "");
  EXPECT_EQ(message(Split::test), "images: " + root + " has no picture for testing, expected a class of two or more");
  for (const char* name : {"train/cat/a.jpg", "train/dog/a.jpg", "val/cow/a.jpg"}) add(name);
  EXPECT_EQ(message(Split::test),
            "images: " + root + "/val holds a class 'cow', expected a class of the training pictures");
}

// Otherwise a part of the training pictures would be the test set, without a word.
TEST_F(ImageLists, RefusesATestFolderOfAnotherForm) {
  const std::string root = place();
  for (const char* name : {"train/cat/a.jpg", "train/dog/a.jpg", "train/cat/b.jpg", "val/0001.jpg"}) add(name);
  EXPECT_EQ(message(Split::test), "images: " + root +
                                      "/val is a folder without folders of classes, expected one for each class, as in "
                                      "train");
  EXPECT_EQ(message(Split::train), message(Split::test));
  add("test/cat/a.jpg");
  EXPECT_TRUE(message(Split::test).starts_with("images: " + root + "/val is a folder without")) << "val comes first";
  add("train.txt", "train/cat/a.jpg 0\ntrain/dog/a.jpg 1\n");
  EXPECT_EQ(message(Split::test), "images: " + root + "/val is a folder beside train.txt, expected the list val.txt");
  add("test.txt", "val/0001.jpg 1\n");
  EXPECT_EQ(message(Split::test), "");
}

TEST_F(ImageLists, SaysWhatIsWrongWithALine) {
  add("a.jpg");
  const std::string list = place("train.txt");
  const std::pair<const char*, const char*> table[] = {
      {"a.jpg 0\na.jpg\n", ": line 2: found 'a.jpg', expected a path and a label from 0 on"},
      {"a.jpg zero\n", ": line 1: found 'a.jpg zero', expected a path and a label from 0 on"},
      {"a.jpg -1\n", ": line 1: found 'a.jpg -1', expected a path and a label from 0 on"},
      {"  7\n", ": line 1: found '  7', expected a path and a label from 0 on"},
      {"a.jpg 99999999999999999999\n", ": line 1: found 'a.jpg 99999999999999999999', expected a path"},
      {"\n", ": found no line, expected a path and a label in each"},
      {"a.jpg 3\n", ": found one class, 3, expected two or more"},
      {"a.jpg 0\na.jpg 1\na.jpg 1000000000\n",
       ": line 3: found label 1000000000, expected 0 to 2 for the 3 different labels of the list"}};
  for (const auto& [lines, sentence] : table) {
    add("train.txt", lines);
    EXPECT_TRUE(message().starts_with(list + sentence)) << message();
  }
  add("train.txt", std::string(1000, 'x'));
  EXPECT_EQ(message(),
            list + ": line 1: found '" + std::string(80, 'x') + "'..., expected a path and a label from 0 on");
  add("train.txt", "\xff\xd8\x1b[2J\xc3\xa4");
  EXPECT_TRUE(message().starts_with(list + ": line 1: found '\\x")) << message();
  EXPECT_TRUE(message().ends_with("[2J\xc3\xa4', expected a path and a label from 0 on")) << message();
  EXPECT_EQ(message().find('\x1b'), std::string::npos) << "an escape sequence reaches the terminal";
  add("train.txt", "a.jpg 0\n\nb/none.jpg 1\n");
  EXPECT_EQ(message(),
            list + ": line 3: " + place("b/none.jpg").string() + ": No such file or directory, expected an image file");
  add("train.txt", "a.jpg 0\na.jpg 1\n");
  add("test.txt", "a.jpg 2\n");
  EXPECT_EQ(message(Split::test),
            place("test.txt").string() + ": line 1: found label 2, expected 0 to 1, the labels of the training list");
}

}  // namespace
}  // namespace tern
