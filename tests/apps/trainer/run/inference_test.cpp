#include <algorithm>

#include "tern/core/error.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/pictures.h"

namespace tern {
namespace {

constexpr int kSide = static_cast<int>(kDigitSide);

/// Digit `index` of the test split as a picture on black.
Image digit(int64_t index) {
  Image image{.width = kSide, .height = kSide, .values = std::vector<uint8_t>(kSide * kSide)};
  draw_digit(7, Split::test, index, image.values);
  return image;
}

/// Writes a drawing as a person makes it: dark on a transparent ground, `scale` times as large, off the centre.
void write_as_drawing(const std::string& path, const Image& image, int scale) {
  const int width = image.width * scale + 60, height = image.height * scale + 20;
  std::vector<uint8_t> grey_alpha(static_cast<size_t>(width * height) * 2, 0);
  for (int y = 0; y < image.height * scale; ++y)
    for (int x = 0; x < image.width * scale; ++x)
      grey_alpha[static_cast<size_t>((y + 5) * width + x + 50) * 2 + 1] = image.at(x / scale, y / scale);
  write_file(path, png_bytes(width, height, 2, grey_alpha));
}

TEST_F(TrainLenet, PredictsAPersonsOwnImages) {
  train({"--epochs", "25", "--save", place("model")});
  std::vector<std::string> arguments = {"--init", place("model"), "--predict"};
  for (int i = 0; i < 10; ++i) {
    arguments.push_back(place(std::to_string(i) + ".png"));
    write_as_drawing(arguments.back(), digit(i), 6);
  }
  const Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int right = 0;
  for (int i = 0; i < 10; ++i)
    right += outcome.out.find(join({place(std::to_string(i) + ".png"), ": ", i, " ("})) != std::string::npos;
  EXPECT_GE(right, 8) << outcome.out;
  for (const char* files : {"1", "4", "5"}) {
    auto in_groups = arguments;
    in_groups.insert(in_groups.begin(), {"--eval-batch-size", files});
    EXPECT_EQ(run(in_groups).out, outcome.out) << files << " files at a time";
  }
}

TEST_F(TrainLenet, NamesImagesItCannotReadAfterTheOthers) {
  ASSERT_EQ(run({"--iterations", "0", "--save", place("model"), "--quiet"}).code, 0);
  write_as_drawing(place("good.png"), digit(1), 1);
  write_file(place("bad.png"), "not an image");
  const std::string whole = read_file(place("good.png"));
  write_file(place("half.png"), whole.substr(0, whole.size() / 2));
  const std::pair<const char*, const char*> table[] = {
      {"bad.png", ": found no whole image (the file has another format), expected PNG, JPEG, "},
      {"half.png", ": truncated: the chunk at offset "},
      {"none.png", ": cannot be read: No such file or directory\n"},
      {"data", ": is a folder, expected an image file\n"}};
  for (const auto& [name, sentence] : table) {
    const Outcome outcome = run({"--init", place("model"), "--predict", place(name), place("good.png")});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.out.starts_with(place("good.png") + ": ")) << outcome.out;
    EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << outcome.out;
    EXPECT_NE(outcome.err.find(place(name) + sentence), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace tern
