#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/log.h"
#include "tests/support/pictures.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

/// Runs programs that train on a folder of two classes. The upper half of a picture is brighter in one class, the lower
/// half in the other.
class TrainImages : public testing::Test {
 protected:
  static constexpr int kPerClass = 22;  // 3 of them are for testing

  TrainImages() {
    for (int i = 0; i < kPerClass; ++i) {
      write("above/" + std::to_string(100 + i) + ".jpg", jpeg_bytes(half_bright(i, true)));
      write("below/" + std::to_string(100 + i) + ".png", png_bytes(half_bright(i, false)));
    }
  }

  static Image half_bright(int i, bool above) {
    Image image = test_picture(40 + i, 50 - i, i);
    for (size_t at = 0; at < image.values.size(); ++at)
      image.values[at] =
          static_cast<uint8_t>(image.values[at] / 4 + ((at < image.values.size() / 2) == above ? 180 : 0));
    return image;
  }
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    const auto path = folder_.path() / "data" / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path, bytes);
  }
  Outcome run(std::vector<std::string> more, const char* program = "train_mlp") const {
    std::vector<std::string> words = {built_program(program), "--data", "images", "--data-dir", place("data")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  Outcome train(std::vector<std::string> more) const {
    const std::vector<std::string> usual = {"--resize",     "8",         "--hidden", "16",   "--batch-size", "8",
                                            "--iterations", "40",        "--lr",     "0.02", "--threads",    "1",
                                            "--log",        place("log")};
    more.insert(more.end(), usual.begin(), usual.end());
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  std::vector<nlohmann::json> log(const std::string& event) const { return read_log(place("log"), event); }
  std::map<int64_t, double> losses() const {
    std::map<int64_t, double> found;
    for (const auto& step : log("step")) found[step["step"]] = step["loss"];
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainImages, LearnThemAndTellOfThoseThatCannotBeRead) {
  write("above/105.jpg", "no picture");
  write("below/120.png", "");
  const Outcome outcome = train({"--loader-threads", "2"});
  EXPECT_NE(outcome.out.find("images (38 training and 6 test images)"), std::string::npos) << outcome.out;
  EXPECT_EQ(log("done").at(0)["accuracy"], 1.0);
  const std::string note =
      "2 of 38 images could not be read so far, others replace them: " + place("data/above/105.jpg") +
      ": found no whole image (";
  EXPECT_NE(outcome.out.find("note: " + note), std::string::npos) << outcome.out;
  ASSERT_EQ(log("note").size(), 1u) << "told once";
  EXPECT_TRUE(log("note")[0]["text"].get<std::string>().starts_with(note));
}

TEST_F(TrainImages, CountWhatAnyRankCouldNotRead) {
  for (const char* name : {"above/111.jpg", "below/101.png"}) write(name, "no picture");  // rank 1 tests on these
  for (const char* transport : {"inproc", "socket"}) {
    train({"--workers", "2", "--transport", transport});
    ASSERT_EQ(log("note").size(), 1u) << transport;
    const std::string note = log("note")[0]["text"];
    EXPECT_TRUE(note.starts_with("2 of 6 images could not be read so far, ")) << note;
    for (const char* name : {"above/111.jpg: ", "below/101.png: "})
      EXPECT_NE(note.find(place("data/") + name), std::string::npos) << note;
  }
}

TEST_F(TrainImages, GiveTheSameLossesFromACache) {
  train({});
  const auto expected = losses();
  ASSERT_EQ(expected.size(), 40u);
  const Outcome first = train({"--cache", place("cache")});
  EXPECT_NE(first.out.find("note: decoding 38 images into " + place("cache/train.images") + '\n'), std::string::npos);
  EXPECT_EQ(losses(), expected);
  const Outcome second = train({"--cache", place("cache")});
  EXPECT_EQ(second.out.find("decoding"), std::string::npos) << second.out;
  EXPECT_EQ(losses(), expected);
}

TEST_F(TrainImages, RanksShareOneCache) {
  train({"--workers", "2"});
  const auto expected = losses();
  const Outcome outcome = train({"--workers", "2", "--transport", "socket", "--cache", place("cache")});
  EXPECT_EQ(losses(), expected);
  EXPECT_EQ(outcome.out.find("decoding 38"), outcome.out.rfind("decoding 38")) << "one rank makes it: " << outcome.out;
}

TEST_F(TrainImages, PredictTheNameOfAClassWhicheverWayTheCameraWasHeld) {
  const std::string model = place("model");
  train({"--save", model});
  const Image seen = half_bright(3, true);
  write_file(place("plain.jpg"), jpeg_bytes(seen));
  write_file(place("upside_down.jpg"), with_orientation(jpeg_bytes(upright(seen.view(), 3)), 3));
  const Outcome outcome = run(
      {"--resize", "8", "--hidden", "16", "--init", model, "--predict", place("plain.jpg"), place("upside_down.jpg")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("plain.jpg: above ("), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("upside_down.jpg: above ("), std::string::npos) << outcome.out;
}

TEST_F(TrainImages, ResNetCropsWhatIsLargerThanImageNetsPictures) {
  const auto printed = [&](const char* side) {
    return run({"--stem", "imagenet", "--resize", side, "--batch-size", "2", "--eval-batch-size", "4", "--iterations",
                "1", "--threads", "1", "--log", place("log")},
               "train_resnet");
  };
  for (const char* side : {"226", "32"}) {
    const Outcome outcome = printed(side);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(log("done").size(), 1u);
  }
}

TEST_F(TrainImages, AlexNetSquashesThemSlow) {
  const Outcome outcome =
      run({"--batch-size", "2", "--iterations", "1", "--log", place("log"), "--quiet"}, "train_alexnet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(log("start").at(0)["parameters"], 56'910'570 - 8 * 4097);
  EXPECT_NE(run({"--print-config"}, "train_alexnet").out.find("\nfit=\"squash\"\n"), std::string::npos);
}

TEST_F(TrainImages, VggTakesThemInEitherSizeSlow) {
  struct Row {
    std::vector<std::string> flags;
    int64_t parameters;
  };
  const Row rows[] = {{{"--resize", "224"}, 128'810'058 - 8 * 4097},
                      {{"--resize", "32", "--stem", "cifar", "--depth", "19"}, 20'554'826 - 8 * 513}};
  for (const Row& row : rows) {
    std::vector<std::string> flags = {"--batch-size", "2",          "--iterations", "2", "--threads", "1",
                                      "--log",        place("log"), "--quiet"};
    flags.insert(flags.end(), row.flags.begin(), row.flags.end());
    const Outcome outcome = run(flags, "train_vgg");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(log("start").at(0)["parameters"], row.parameters);
    EXPECT_EQ(log("step").size(), 2u);
  }
}

TEST_F(TrainImages, GoogLeNetAndBnInceptionTakeRandomAreasOfThem) {
  for (const auto& [variant, parameters] :
       {std::pair{"googlenet", 5'610'154 - 8 * 1025}, {"bn-inception", 10'270'474 - 8 * 1025}}) {
    const Outcome outcome = run({"--variant", variant, "--resize", "48", "--batch-size", "4", "--iterations", "2",
                                 "--threads", "1", "--log", place("log"), "--quiet"},
                                "train_googlenet");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(log("start").at(0)["parameters"], parameters);
    EXPECT_EQ(log("step").size(), 2u);
  }
}

TEST_F(TrainImages, SayWhatIsWrongWithThem) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& sentence) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "more than one line: " << outcome.err;
  };
  refused({"--resize", "0"}, "--resize: found 0, expected 1 or more");
  refused({"--resize", "5000"}, "--resize: found 5000, expected 4096 or fewer");
  EXPECT_NE(run({"--resize", "20"}, "train_alexnet").err.find("--resize: found 20, expected 224 or more, "),
            std::string::npos);
  refused({"--fit", "stretch"}, "--fit: found 'stretch', expected crop|squash");
  refused({"--cache", place("data/above/100.jpg")}, "--cache: ");
  refused({"--batch-size", "41"}, "--batch-size: found 41, expected 38 or fewer: all there is in images");
  write("empty/notes.txt", "");
  refused({}, place("data/empty") + " holds no picture, expected .jpg");
  write("train.txt", "above/100.jpg 0\nbelow/100.png 1\nbelow/none.png 1\n");
  refused({}, "train.txt: line 3: " + place("data/below/none.png") + ": No such file or directory");
  write("train.txt", "above/100.jpg 0\nbelow/100.png 7\n");
  refused({}, "train.txt: line 2: found label 7, expected 0 to 1 for the 2 different labels of the list");
  const Outcome alone = run_program({built_program("train_mlp"), "--fit", "crop"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("--fit would change nothing: it belongs to --data images"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace tern
