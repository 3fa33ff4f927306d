#include <gtest/gtest.h>

#include <algorithm>

#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace tern::reproduce {
namespace {

/// The value of the flag `name`, or an empty string if the run does not have it.
std::string flag(const Run& run, const std::string& name) {
  const auto found = std::ranges::find(run.flags, name);
  return found == run.flags.end() ? "" : *std::next(found);
}

/// A folder with CIFAR-10's test images, all of them black.
class BlackCifar10 {
 public:
  BlackCifar10() {
    const auto file = folder_.path() / "test_batch.bin";
    write_file(file.string(), "");
    std::filesystem::resize_file(file, 10'000 * 3073);
  }
  std::string folder() const { return folder_.path().string(); }

 private:
  TemporaryFolder folder_;
};

/// The first run by `method`. If `workers` is given, the run also has that many workers.
const Run& run_by(const std::vector<Run>& runs, const std::string& method, const std::string& workers = "") {
  return *std::ranges::find_if(runs, [&](const Run& run) {
    return flag(run, "--method") == method && (workers.empty() || flag(run, "--workers") == workers);
  });
}

/// The results of all runs. `result` gives each run's result from its method and seed.
Results results_of(const Experiment& experiment, const std::function<RunResult(const std::string&, int)>& result) {
  Results results;
  for (const auto& run : experiment.runs()) {
    RunResult& made = results[run.name] = result(flag(run, "--method"), std::stoi(flag(run, "--seed")));
    if (made.curve.empty()) made.curve = {{.score = made.score}};
    made.curve.back().step = run.steps;
  }
  return results;
}

/// Expects `line` in `text`, whatever the widths of the columns are.
void expect_line(const std::string& text, const std::string& line) {
  std::string narrow = text;
  narrow.erase(std::unique(narrow.begin(), narrow.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
               narrow.end());
  EXPECT_NE(narrow.find(line), std::string::npos) << line << "\nis not in\n" << narrow;
}

TEST(IstExperiments, TrainVgg12OnAFolderOfPictures) {
  TemporaryFolder folder;
  for (int i = 0; i < 24; ++i) {
    const auto place = folder.path() / (i % 2 == 0 ? "even" : "odd") / (std::to_string(100 + i) + ".png");
    std::filesystem::create_directories(place.parent_path());
    write_file(place, png_bytes(test_picture(40, 40, i)));
  }
  const auto table =
      ist_table1().make({.data = "images", .data_dir = folder.path().string(), .iterations = 8, .workers = {4}});
  const auto runs = table->runs();
  ASSERT_EQ(runs.size(), 3u);
  for (const auto& run : runs) {
    EXPECT_EQ(run.program, "train_vgg");
    EXPECT_EQ(flag(run, "--depth"), "12");
    EXPECT_EQ(flag(run, "--top"), "1") << "of two classes";
    EXPECT_EQ(run.places, (std::vector<std::string>{"--data-dir", folder.path().string()}));
  }
  EXPECT_EQ(flag(run_by(runs, "ist"), "--ist-scope"), "fc");
  expect_line(table->report({}).text, "## VGG12 on pictures of 2 classes");
}

TEST(IstExperiments, GiveEveryWorkerAnEqualBatch) {
  const auto runs = ist_table3().make({.data = "tones", .workers = {4}})->runs();
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(flag(run_by(runs, "data-parallel"), "--local-steps"), "");
  for (const char* method : {"local-sgd", "ist"}) {
    EXPECT_EQ(flag(run_by(runs, method), "--local-steps"), "10");
  }
  for (const auto& run : runs) {
    EXPECT_EQ(run.program, "train_mlp");
    EXPECT_EQ(flag(run, "--local-batch-size"), "128");
    EXPECT_EQ(flag(run, "--iterations"), "470") << "10 epochs of 24,500 melodies, 512 a step";
    EXPECT_EQ(flag(run, "--calibrate-batches"), "20");
    EXPECT_EQ(flag(run, "--link"), "rate=1gbit,latency=0.1ms");
  }
}

TEST(IstExperiments, TrainTheResidualNetworkWhereItsFilesAre) {
  const auto tasks = [](const ExperimentOptions& options) {
    std::vector<std::string> programs;
    for (const auto& run : ist_table3().make(options)->runs())
      if (flag(run, "--method") == "ist") programs.push_back(run.program + flag(run, "--ist-scope"));
    return programs;
  };
  using Programs = std::vector<std::string>;
  EXPECT_EQ(tasks({}), (Programs{"train_mlpfc"}));
  const BlackCifar10 cifar10;
  EXPECT_EQ(tasks({.data_dir = cifar10.folder()}), (Programs{"train_mlpfc", "train_resnetfilters"}));
  EXPECT_EQ(tasks({.data = "shapes"}), (Programs{"train_resnetfilters"}));
  EXPECT_EQ(flag(ist_fig4().make({.data = "cifar10", .data_dir = "x"})->runs().front(), "--depth"), "18");
  EXPECT_EQ(flag(ist_fig4().make({.data = "cifar10", .data_dir = "x", .quick = true})->runs().front(), "--depth"),
            "20");
}

/// An empty clip of each of two words.
void write_two_words(const std::filesystem::path& folder) {
  for (const char* word : {"no", "yes"}) {
    std::filesystem::create_directory(folder / word);
    write_file(folder / word / "00176480_nohash_0.wav", "");
  }
}

/// Both of the paper's networks, the larger one with one seed. A rank's computation is measured once, on one core.
TEST(IstExperiments, TrainOnSpokenWords) {
  const TemporaryFolder folder;
  write_two_words(folder.path());
  const ExperimentOptions options = {
      .data = "speech-commands", .data_dir = folder.path().string(), .iterations = 8, .seeds = 2, .workers = {4}};
  const auto runs = ist_table1().make(options)->runs();
  for (const char* layers : {"2", "3"}) {
    const bool small = layers[0] == '2';
    const int64_t hidden = small ? 4096 : 8192;
    std::vector<std::string> ranks, kinds;
    for (const auto& run : runs) {
      if (flag(run, "--layers") != layers) continue;
      EXPECT_EQ(run.program, "train_mlp");
      EXPECT_EQ(run.places, (std::vector<std::string>{"--data-dir", options.data_dir}));
      EXPECT_EQ(flag(run, "--link"), "") << "no message waits";
      if (flag(run, "--threads") == "1") {
        ranks.push_back(flag(run, "--hidden"));
        EXPECT_EQ(flag(run, "--eval-every"), "");
        continue;
      }
      EXPECT_EQ(flag(run, "--hidden"), std::to_string(hidden));
      EXPECT_EQ(flag(run, "--calibrate-batches"), "4") << "one worker alone is evaluated as the others are";
      kinds.push_back(flag(run, "--method") + " " + flag(run, "--eval-every"));
    }
    EXPECT_EQ(ranks, (std::vector{std::to_string(hidden), std::to_string(hidden / 4)}));
    std::vector<std::string> expected;
    for (int seed = 0; seed < (small ? 2 : 1); ++seed)
      for (const char* kind : {"data-parallel 5", "local-sgd 20", "ist 20"}) expected.push_back(kind);
    expected.insert(expected.end(), small ? 2 : 1, " 20");
    EXPECT_EQ(kinds, expected);
  }
  ExperimentOptions unnamed = options;
  unnamed.data.clear();
  const auto found = ist_table1().make(unnamed)->runs();
  ASSERT_EQ(found.size(), runs.size()) << "the folder tells which data it has";
  for (size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(found[i].name, runs[i].name);
  const std::string text = ist_table1().make(options)->report({}).text;
  EXPECT_NE(text.find("## MLP 4096-4096-2 on Speech Commands\n\nSeeds: 1 to 2."), std::string::npos) << text;
  EXPECT_NE(text.find("## MLP 4096-8192-8192-2 on Speech Commands\n\nSeeds: 1."), std::string::npos) << text;
}

/// Figure 3 measures the waits; the others count the link's time.
TEST(IstExperiments, CountTheLinksTimeOfSpokenWords) {
  const TemporaryFolder folder;
  write_two_words(folder.path());
  const ExperimentOptions options = {
      .data = "speech-commands", .data_dir = folder.path().string(), .iterations = 2, .workers = {4}};
  EXPECT_EQ(flag(run_by(ist_fig3().make(options)->runs(), "ist"), "--link"), "rate=1gbit,latency=0.1ms");

  // A rank's step takes 0.1 s, and so does its message in data parallel. The crossing of 77 % is at 1.82 steps.
  const auto learned = [](const std::string& method, int) {
    RunResult result;
    result.step_seconds = 0.1;
    if (method == "data-parallel") result.bytes_sent_payload = 2 * int64_t{12'500'000};
    result.curve = {{.step = 1, .seconds = 10, .score = 0.63, .loss = 1, .bytes_sent = 5},
                    {.step = 2, .seconds = 30, .score = 0.8, .loss = 0.5, .bytes_sent = 10}};
    return result;
  };
  const auto figure = ist_fig4().make(options);
  const Report report = figure->report(results_of(*figure, learned));
  expect_line(report.text, "| data parallel | 0.4 | 0.2 | 2.0 | 10.6 |");
  expect_line(report.tables.at("curves.csv"), "\nspeech2,data-parallel,4,2,0.4,0.8,0.5,10\n");
  expect_line(report.text, "| method | steps | seconds on own machines |");
  const auto table = ist_table1().make(options);
  expect_line(table->report(results_of(*table, learned)).text, "| 0.77 | 1 | SGD | 2 | 26.5 | – | 0.2 | – | – | – |");
  EXPECT_EQ(figure->report({}).tables.at("curves.csv").find("speech2"), std::string::npos);
}

TEST(IstExperiments, RefuseWhatWouldChangeNothing) {
  const auto refusal = [](const ExperimentEntry& entry, const ExperimentOptions& options) {
    return message_of<InputError>([&] { entry.make(options); });
  };
  EXPECT_EQ(refusal(ist_fig2(), {.data = "tones"}), "--data would change nothing: ist-fig2 reads no files");
  EXPECT_EQ(refusal(ist_fig2(), {.workers = {2, 33}}), "--workers: found 33, expected 1 to 32");
  EXPECT_EQ(refusal(ist_fig3(), {.seeds = 2}), "--seeds would change nothing: ist-fig3 shows one run of each kind");
  EXPECT_EQ(refusal(ist_fig4(), {.workers = {2, 4}}), "--workers: found 2 numbers, expected 1");
  EXPECT_EQ(refusal(ist_table1(), {.workers = {1}}), "--workers: found 1, expected 2 or more");
  EXPECT_EQ(refusal(ist_table3(), {.data = "digits"}),
            "--data: found 'digits', expected cifar10|tones|shapes|speech-commands|images");
}

// A short run does not reach the paper's accuracies of a convolutional network; a whole one shows them.
TEST(IstExperiments, CompareTheResidualNetworkAtThePapersAccuracies) {
  const auto text = [](bool quick) {
    return ist_table1().make({.data = "cifar10", .data_dir = "cifar10", .quick = quick})->report({}).text;
  };
  expect_line(text(false), "| 0.90 | 2 | IST |");
  expect_line(text(true), "| 0.40 | 2 | IST |");
}

TEST(IstExperiments, NameEachTasksLink) {
  const BlackCifar10 cifar10;
  const auto experiment = ist_table1().make({.data_dir = cifar10.folder(), .quick = true});
  const std::string figure = experiment->report({}).figures.at("seconds.svg");
  EXPECT_NE(figure.find("on tones: link of 1gbit · ResNet-20 on CIFAR-10: link of 100mbit"), std::string::npos);
}

// The first runs need no files, so a wrong folder would be noticed late.
TEST(IstExperiments, RefuseAFolderWithoutTheirData) {
  const TemporaryFolder empty;
  for (const auto& entry : {ist_table1(), ist_table3(), ist_fig3(), ist_fig4()}) {
    const std::string message = message_of<InputError>([&] { entry.make({.data_dir = empty.path().string()}); });
    EXPECT_TRUE(message.starts_with("--data-dir: found neither Speech Commands nor CIFAR-10 in " +
                                    empty.path().string() + ": "))
        << message;
  }
}

TEST(IstExperiments, MeasureEpochsAgainstOneWorkers) {
  const auto experiment = ist_fig3().make({.data = "tones", .iterations = 20, .workers = {2}});
  Results results = results_of(*experiment, [](const std::string& method, int) {
    RunResult result;
    result.step_seconds = 0.1;
    result.bytes_sent_payload = 20 * 12'500'000;
    result.curve = {{.seconds = method.empty() ? 2.0 : method == "ist" ? 1.0 : 4.0}};
    result.time = {.compute = 3, .wait = 1};
    return result;
  });
  for (const auto& run : experiment->runs())
    if (flag(run, "--threads") == "1" && flag(run, "--hidden") == "2048") results[run.name].step_seconds = 0.02;
  const std::string text = experiment->report(results).text;
  // One worker takes 191 steps, and two take 95. A step takes 0.1 s, a subnet's a fifth, on a link of 125 MB/s.
  expect_line(text, "| 1 | SGD | – | – | 19.1 | 1 | 19.1 |");
  expect_line(text, "| 2 | DP | 12.50 | 25 | 19.0 | 1.01 | 19.1 |");
  expect_line(text, "| 2 | IST 5 | 12.50 | 25 | 4.8 | 4.02 | 11.4 | 1.67 |");
  expect_line(text, " training examples, 20 steps, ");
}

/// A run that reaches 63 % after 10 s and 80 % after 30 s, both times `pace`.
RunResult learned(double pace) {
  RunResult result;
  result.step_seconds = 0.1;
  result.curve = {{.step = 1, .seconds = 10 * pace, .score = 0.63, .loss = 1, .bytes_sent = 5},
                  {.step = 2, .seconds = 30 * pace, .score = 0.8, .loss = 0.5, .bytes_sent = 10}};
  return result;
}
RunResult learned_by(const std::string& method, int) {
  RunResult result = learned(method == "ist" ? 0.5 : method == "local-sgd" ? 2 : 4);
  if (method == "data-parallel") result.bytes_sent_payload = 950 * int64_t{12'500'000};  // 0.1 s a step at 1 Gbit/s
  return result;
}

TEST(IstExperiments, CompareTheTimeToAnAccuracy) {
  const auto table = ist_table1().make({.data = "tones", .workers = {2}});
  const std::string text = table->report(results_of(*table, learned_by)).text;
  expect_line(text, "| 0.63 | 2 | data parallel | 1 | 40.0 | 8.00 | 0.2 | 2.00 | 118 | 3.37 |");
  // 75 % is at 12/17 of the way from 63 to 80 %, in 950 steps.
  expect_line(text, "| 0.75 | 2 | data parallel | 671 | 96.5 | 8.00 | 134.2 | 2.00 | 759 | 3.29 |");
  expect_line(text, "| 0.75 | 2 | local SGD | 671 | 48.2 | 4.00 | 67.1 | 1.00 | 444 | 1.92 |");
  expect_line(text, "| 0.77 | 2 | local SGD | 783 | 52.9 | 4.00 | 78.3 | 1.00 | – | – |");
  expect_line(table->report({}).text, "| 0.63 | 2 | IST | – | – | – | – | – | 35 |");

  const auto figure = ist_fig4().make({.data = "tones", .iterations = 2});
  const Report report = figure->report(results_of(*figure, learned_by));
  expect_line(report.text, "| data parallel | 105.9 | 13.2 | 8.0 | 10.6 |");
  expect_line(report.tables.at("curves.csv"), "\nmlp,ist,8,1,5,0.63,1,5\n");
}

TEST(IstExperiments, CompareFinalAccuracies) {
  const auto table = ist_table3().make({.data = "tones", .seeds = 2});
  const Results results = results_of(*table, [](const std::string& method, int seed) {
    RunResult result;
    result.score = (method == "ist" ? 0.82 : 0.8) + 0.01 * seed;
    return result;
  });
  expect_line(table->report(results).text, "| 2 | IST | 10 | 83.50 ± 0.50 | +2.00 | 81.53 |");
}

TEST(IstTable2, TrainsThePapersWidthsOnDrawnDataOrFiles) {
  const auto runs = ist_table2().make({.seeds = 1})->runs();
  std::vector<std::string> widths;
  for (const auto& run : runs) {
    EXPECT_EQ(run.program, "train_extreme");
    EXPECT_EQ(flag(run, "--inputs") + " " + flag(run, "--labels"), "13591 67009");
    EXPECT_EQ(flag(run, "--workers"), "4");
    widths.push_back(flag(run, "--method") + " " + flag(run, "--hidden"));
  }
  EXPECT_EQ(flag(runs[0], "--lr") + " " + flag(runs[1], "--lr") + " " + flag(runs[5], "--lr"), "0.3 0.075 0.015");
  EXPECT_EQ(widths,
            (std::vector<std::string>{"data-parallel 512", "ist 512", "ist 1024", "ist 1536", "ist 2048", "ist 2560"}));
  const TemporaryFolder folder;
  write_file(folder.path() / "train.txt", "1 1 1\n0 0:1\n");
  const auto own = ist_table2().make({.data_dir = folder.path().string(), .iterations = 5, .workers = {8}})->runs();
  EXPECT_EQ(flag(own.front(), "--data"), "extreme-file");
  EXPECT_EQ(flag(own.front(), "--inputs"), "");
  EXPECT_EQ(own.front().places, (std::vector<std::string>{"--data-dir", folder.path().string()}));
}

TEST(IstTable2, ShowsPrecisionsBesideThePapers) {
  const auto experiment = ist_table2().make({.seeds = 2});
  Results results;
  for (const auto& run : experiment->runs()) {
    if (flag(run, "--hidden") == "2560") continue;
    const double score = std::stod(flag(run, "--hidden")) / 10'000 + 0.01 * std::stod(flag(run, "--seed"));
    results[run.name].scores = {
        {"precision_at_1", score}, {"precision_at_3", score / 2}, {"precision_at_5", score / 4}};
  }
  const std::string text = experiment->report(results).text;
  expect_line(text, "| data parallel | 512 | 6.62 ± 0.50 | 3.31 ± 0.25 | 1.66 ± 0.12 | 38.61 | 34.54 | 31.64 |");
  expect_line(text, "| IST | 2560 | – | – | – | 43.84 | 39.44 | 36.58 |");
  EXPECT_NE(experiment->report(results).figures.at("precision.svg").find("P@5"), std::string::npos);
}

TEST(IstTable2, RefusesWhatWouldChangeNothing) {
  const auto refusal = [](const ExperimentOptions& options) {
    return message_of<InputError>([&] { ist_table2().make(options); });
  };
  EXPECT_EQ(refusal({.data = "digits"}), "--data: found 'digits', expected extreme|extreme-file");
  EXPECT_EQ(refusal({.data = "extreme-file"}),
            "ist-table2 needs --data-dir DIR with the files of extreme-file, or, to try it, --data extreme");
  EXPECT_EQ(refusal({.data = "extreme", .data_dir = "x"}),
            "--data-dir would change nothing: --data extreme reads no files");
  EXPECT_EQ(refusal({.workers = {2, 4}}), "--workers: found 2 numbers, expected 1");
}

}  // namespace
}  // namespace tern::reproduce
