#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/data/an4_corpus.h"
#include "tests/support/log.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

/// Runs train_lstm on a corpus of three utterances.
class TrainLstm : public testing::Test {
 protected:
  TrainLstm() { write(folder_.path() / "an4.tar.xz", xz(tar(an4_corpus()))); }

  Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {built_program("train_lstm"),
                                      "--data-dir",
                                      folder_.path().string(),
                                      "--hidden",
                                      "16",
                                      "--projection",
                                      "8",
                                      "--layers",
                                      "1",
                                      "--batch-size",
                                      "2",
                                      "--iterations",
                                      "100",
                                      "--lr",
                                      "0.02",
                                      "--threads",
                                      "1",
                                      "--quiet",
                                      "--log",
                                      log()};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  std::string log() const { return (folder_.path() / "log").string(); }
  std::vector<nlohmann::json> events(const std::string& kind) const { return read_log(log(), kind); }

  TemporaryFolder folder_;
};

// The utterance for testing is one of those for training.
TEST_F(TrainLstm, LearnsPhonesAndReportsTheirErrors) {
  auto corpus = an4_corpus();
  for (auto& [name, bytes] : corpus) {
    if (name.ends_with("test.transcription")) bytes = text_bytes("GO NO (three)\n");
    if (name.ends_with("three.mfc")) bytes = mfc(cepstra(20, 1));
  }
  write(folder_.path() / "an4.tar.xz", xz(tar(corpus)));
  for (const char* beam : {"1", "4"}) {
    const Outcome outcome = run({"--beam", beam});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto steps = events("step"), evaluations = events("eval");
    ASSERT_EQ(steps.size(), 100u);
    EXPECT_LT(steps.back()["loss"], 0.1 * steps.front()["loss"].get<double>());
    EXPECT_EQ(evaluations.back()["phone_error_rate"], 0);
    EXPECT_EQ(events("start")[0]["scores"][0]["higher_is_better"], false);
  }
}

TEST_F(TrainLstm, TrainsWithQuantizedGradientsOfTwoWorkers) {
  const Outcome outcome = run({"--workers", "2", "--codec", "qsgd:bits=4,bucket=512,norm=max", "--beam", "4"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(events("step").back()["loss"], events("step").front()["loss"]);
}

TEST_F(TrainLstm, ResumesWithAnotherBeam) {
  const auto losses = [&] {
    std::map<int64_t, double> found;
    for (const auto& step : events("step")) found[step["step"]] = step["loss"];
    return found;
  };
  const std::string folder = folder_.path() / "run";
  const std::vector<std::string> checkpointing = {"--checkpoint", folder, "--checkpoint-every", "90"};
  ASSERT_EQ(run(checkpointing).code, 0);
  const auto unbroken = losses();
  std::filesystem::remove(folder + "/step-00000100.tern");
  std::filesystem::remove(log());
  auto resumed = checkpointing;
  resumed.insert(resumed.end(), {"--resume", "--beam", "3"});
  const Outcome outcome = run(resumed);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rest = losses();
  EXPECT_EQ(rest.size(), 10);
  for (const auto& [step, loss] : rest) EXPECT_EQ(loss, unbroken.at(step)) << step;
}

TEST_F(TrainLstm, SaysWhatDoesNotFit) {
  const auto refused = [](const std::string& place, const std::vector<std::string>& more, const std::string& sentence) {
    std::vector<std::string> words = {
        built_program("train_lstm"), "--data-dir", place, "--hidden", "16", "--batch-size", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  };
  const std::string place = folder_.path().string();
  refused(place, {"--projection", "16"}, "--projection: found 16, expected less than --hidden 16");
  refused(place, {"--projection", "8", "--stride", "9"},
          "has 3 stacks of frames for 4 phones, expected 4 or more: a smaller stride gives more");
  refused("/no/such", {"--projection", "8"}, "an4: /no/such does not exist");
}

TEST_F(TrainLstm, NamesADamagedFileOfCepstra) {
  auto corpus = an4_corpus();
  for (auto& [name, bytes] : corpus)
    if (name.ends_with("two.mfc")) bytes.resize(bytes.size() - 4);
  write(folder_.path() / "an4.tar.xz", xz(tar(corpus)));
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("feat/an4_clstk/b/two.mfc: byte 0: found a count of 91 numbers, expected 90: the file has "
                             "360 bytes behind it"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "more than one line: " << outcome.err;
}

}  // namespace
}  // namespace tern
