#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "tests/apps/reproduce/stand_in_trainers.h"
#include "tests/support/pipe.h"
#include "tests/support/process.h"

namespace tern {
namespace {

class Reproduce : public StandInTrainers {
 protected:
  /// Twelve runs: float, ternary with 2 workers and ternary with 4; each with 2 seeds, with and without momentum.
  std::vector<std::string> table(const std::vector<std::string>& more = {}) const {
    return words({programs_ / "reproduce", "terngrad-fig3", "--data", "digits", "--out", results_, "--workers", "4,2",
                  "--seeds", "2", "--iterations", "700"},
                 more);
  }
  void wait_until_it_hangs() const {
    for (int i = 0; i < 2000 && !fs::exists(programs_ / "hanging"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(fs::exists(programs_ / "hanging"));
  }

  /// Expects that each run's line in runs.csv agrees with the last line of its log.
  void expect_csv_of_logs() const {
    const auto csv = lines_of(results_ / "runs.csv");
    for (const auto& entry : fs::directory_iterator(results_ / "runs")) {
      const auto done = nlohmann::json::parse(lines_of(entry.path() / "log.jsonl").back());
      const std::string row = entry.path().filename().string() + ",";
      const auto found = std::ranges::find_if(csv, [&](const auto& line) { return line.starts_with(row); });
      ASSERT_NE(found, csv.end()) << row;
      // As numbers: one number can have two texts of the same length.
      std::string rest = *found;
      for (const char* key : {"bytes_sent_overhead", "bytes_sent_payload", "seconds", "loss", "accuracy", "steps"}) {
        const size_t comma = rest.rfind(',');
        ASSERT_NE(comma, std::string::npos) << *found;
        const std::string cell = rest.substr(comma + 1);
        rest.resize(comma);
        if (done.contains(key))
          EXPECT_EQ(nlohmann::json::parse(cell, nullptr, false), done[key]) << key << " of " << *found;
        else
          EXPECT_EQ(cell, "") << key << " of " << *found;
      }
    }
  }
};

constexpr const char* kHung = "momentum-ternary-2-workers-700-steps-seed-1";

TEST_F(Reproduce, ListsItsTables) {
  const Outcome outcome = run_program({built_program("reproduce"), "list"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text : {"terngrad-fig3\n", "TernGrad, Figure 3", "MNIST", "--quick", "terngrad-table3\n",
                           "TernGrad, Table 3: GoogLeNet", "--data shapes224", "qsgd-thm3.6\n", "ist-table2\n",
                           "  device  CPU, or GPU: --device cuda\n"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
}

TEST_F(Reproduce, PrintsItsVersions) {
  const Outcome outcome = run_program({built_program("reproduce"), "--version"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("reproduce: tern ")) << outcome.out;
}

TEST_F(Reproduce, RefusesWhatCannotBe) {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{}, "NAME"},
      {{"terngrad-fg3"}, "there is no table 'terngrad-fg3', did you mean 'terngrad-fig3'?"},
      {{"ist-fig1"}, "ist-fig1 (IST, Figure 1: a network decomposed into three subnets) is not run: it is a diagram"},
      {{"terngrad-fig3"}, "needs --data-dir DIR with the files of mnist, or, to try it, --data digits"},
      {{"terngrad-fig3", "--data", "tones"}, "--data: found 'tones', expected mnist|digits"},
      {{"terngrad-fig3", "--data", "digits", "--data-dir", "."}, "--data-dir would change nothing"},
      {{"terngrad-fig3", "--data-dir", "/no/such"}, "--data-dir: /no/such: no such file or folder"},
      {{"terngrad-fig3", "--data", "digits", "--workers", "2,3"}, "--workers: found 3, expected a number that shares"},
      {{"terngrad-fig3", "--data", "digits", "--workers", "2,,4"}, "--workers: found '', expected whole numbers with"},
      {{"terngrad-fig3", "--data", "digits", "--workers", "2,"}, "--workers: found '', expected whole numbers with"},
      {{"ist-table1", "--workers", "2,99999"}, "--workers: found 99999, expected at most 64"},
      {{"terngrad-fig3", "--data", "digits", "--seeds", "0"}, "--seeds: found 0, expected 1 or more"},
      {{"terngrad-fig3", "--data", "digits", "--iterations", "many"}, "--iterations: found 'many', expected a whole"},
      {{"terngrad-fig3", "--dance"}, "--dance"},
      {{"terngrad-fig3", "--data", "digits", "--device", "tpu"},
       "--device: device 'tpu': expected cpu, cuda or cuda:N"},
      {{"terngrad-fig4", "--data", "shapes", "--device", "cuda"},
       "--device: found cuda, expected cpu: terngrad-fig4 computes in this process"},
      {{"terngrad-fig5", "--device", "cuda"}, "--device: found cuda, expected cpu: terngrad-fig5 computes in"},
      {{"qsgd-fig1", "--device", "cuda:2"}, "--device: found cuda:2, expected cpu: qsgd-fig1 computes in this process"},
  };
  for (const auto& [flags, sentence] : rows) {
    const Outcome outcome = run_program(words({built_program("reproduce")}, flags));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
}

TEST_F(Reproduce, RefusesALauncher) {
  const Outcome outcome =
      run_program({"/usr/bin/env", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_PORT=29511",
                   built_program("reproduce"), "terngrad-fig3", "--data", "digits", "--out", results_});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("environment: found rank 1 of 2 from torchrun (RANK, WORLD_SIZE), expected none, because "
                             "reproduce starts all ranks of its runs itself"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Reproduce, WritesWhatTheLogsSay) {
  const Outcome outcome = run_program(table());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Accuracies of the two seeds: float 99.10 and 99.20, two workers 99.08 and 99.18, four workers 99.06 and 99.16.
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(
      containing(page,
                 "| 99.15 ± 0.05 | 99.13 ± 0.05 |            +0.02 ± 0.07 | −0.15 to +0.22 |                  – |"),
      2);
  EXPECT_EQ(
      containing(page,
                 "| 99.15 ± 0.05 | 99.11 ± 0.05 |            +0.04 ± 0.07 | −0.15 to +0.22 |                  – |"),
      2);
  EXPECT_EQ(containing(page, "The paper trains for 10000 steps"), 1);
  EXPECT_EQ(containing(page, "A number after ± is a standard error."), 1);
  EXPECT_EQ(containing(page, "Done: "), 0);
  EXPECT_EQ(containing(page, "12 min of work on "), 1);
  EXPECT_EQ(containing(page, "`runs/` has their logs."), 1);
  EXPECT_EQ(calls().size(), 12);
  for (const auto& call : calls()) EXPECT_EQ(containing(page, call.substr(0, call.find("--log") + 5)), 1) << call;

  const auto csv = lines_of(results_ / "runs.csv");
  EXPECT_EQ(csv.size(), 13);
  EXPECT_EQ(containing(csv, "vanilla-ternary-4-workers-700-steps-seed-2,vanilla,ternary,4,2,700,0.9916,0.5,60,4000,9"),
            1);
  expect_csv_of_logs();
  EXPECT_NE(read_file(results_ / "accuracy.svg").find("(a) momentum SGD"), std::string::npos);
}

TEST_F(Reproduce, GoesOnFromKeptResultsWithoutTheirRuns) {
  const fs::path kept = results_ / "kept", first = results_ / "first", second = results_ / "second";
  const auto in = [&](const fs::path& out) {
    return words({programs_ / "reproduce", "terngrad-fig3", "--data", "digits", "--workers", "4", "--iterations", "700",
                  "--seeds", "1", "--kept", kept, "--out", out},
                 {});
  };
  ASSERT_EQ(run_program(in(first)).code, 0);
  const auto made = calls().size();
  EXPECT_EQ(made, 4U);
  EXPECT_EQ(std::distance(fs::directory_iterator(kept), fs::directory_iterator()), 4);
  fs::remove(kept / "vanilla-ternary-4-workers-700-steps-seed-1.json");
  const Outcome again = run_program(in(second));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(calls().size(), made + 1);
  EXPECT_EQ(lines_of(first / "runs.csv"), lines_of(second / "runs.csv"));
  EXPECT_TRUE(fs::exists(kept / "vanilla-ternary-4-workers-700-steps-seed-1.json"));
  const auto page = lines_of(second / "README.md");
  EXPECT_EQ(containing(page, "; an unknown processor, without evaluations. Every run"), 1) << "the kept logs name none";
  EXPECT_EQ(containing(page, "; `runs/` has the logs of those that ran here."), 1);
}

// The logs of the stand-ins do not name their processor, so their times are not of this one.
TEST_F(Reproduce, SaysHowManyKeptTimesItMeasuresAgain) {
  const fs::path kept = results_ / "kept";
  const auto grid = [&](const char* out) {
    const Outcome outcome = run_program(
        {programs_ / "reproduce", "grid", "--quick", "--data", "digits", "--kept", kept, "--out", results_ / out});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(grid("first").find("another processor"), std::string::npos);
  const auto made = calls().size();
  const std::string again = grid("second");
  EXPECT_NE(again.find("grid: 38 runs, 16 done before"), std::string::npos) << again;
  EXPECT_NE(again.find("\nof these, 22 runs measured time on another or an unknown processor: repeated here"),
            std::string::npos)
      << again;
  EXPECT_EQ(calls().size(), made + 22);
}

TEST_F(Reproduce, SaysWhereATableLiesBeyondThePapers) {
  const Outcome outcome = run_program({programs_ / "reproduce", "terngrad-fig3", "--data", "digits", "--out", results_,
                                       "--workers", "64", "--seeds", "7", "--iterations", "10000"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // The mean accuracy is 99.40 for float and 98.76 for ternary.
  EXPECT_EQ(containing(lines_of(results_ / "README.md"), "0.42 lost"), 2) << outcome.out;
}

TEST_F(Reproduce, GoesOnAfterSigkillWithoutRepeatingARun) {
  write_file(programs_ / "hang", "2");
  Process process(table());
  wait_until_it_hangs();
  process.send(SIGKILL);
  EXPECT_EQ(process.wait().code, 128 + SIGKILL);
  EXPECT_EQ(containing(lines_of(results_ / "README.md"), "**Done: 1 of 12**"), 1);
  const auto before = calls();
  ASSERT_EQ(before.size(), 2);

  fs::remove(programs_ / "hang");
  const Outcome outcome = run_program(table());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("12 runs, 1 done before"), std::string::npos) << outcome.err;
  ASSERT_EQ(calls().size(), 13);
  EXPECT_EQ(calls()[2], before[1] + " --resume");
  EXPECT_EQ(containing(calls(), "--resume"), 1);
  EXPECT_FALSE(fs::exists(results_ / "runs" / kHung / "checkpoints"));

  EXPECT_EQ(run_program(table()).code, 0);
  EXPECT_EQ(calls().size(), 13) << "a table that is whole was run again";
}

TEST_F(Reproduce, StopsItsRunOnAnInterrupt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(results_);
    fs::remove(programs_ / "hanging");
    write_file(programs_ / "hang", "2");
    Process process(table());
    wait_until_it_hangs();
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_NE(outcome.err.find(kHung), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("the same command goes on from there"), std::string::npos) << outcome.err;
  }
}

// Some programs that start others ignore SIGCHLD, and those inherit this.
TEST_F(Reproduce, EndsIfItInheritsThatSigchldIsIgnored) {
  Process process(words({"/usr/bin/env", "--ignore-signal=CHLD"}, table()));
  ASSERT_TRUE(process.ends_within(std::chrono::seconds(60)));
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 12);
}

TEST_F(Reproduce, RepeatsTheWordsOfARunThatFails) {
  write_file(programs_ / "fail", "4");
  const Outcome outcome = run_program(table());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(
      outcome.err.find("-ternary-4-workers-700-steps-seed-1 ended with code 2: train_lenet: the flags are broken"),
      std::string::npos)
      << outcome.err;
  fs::remove(programs_ / "train_lenet");
  const Outcome without = run_program(table());
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("train_lenet: no such program"), std::string::npos) << without.err;
}

// As a build does while a table is at work.
TEST_F(Reproduce, GoesOnAfterItsFileIsReplaced) {
  const std::string first = "here=$(dirname \"$0\")\n";
  std::string trainer = kTrainer;
  trainer.insert(trainer.find(first) + first.size(),
                 "cp \"$here/reproduce\" \"$here/new\" && mv \"$here/new\" \"$here/reproduce\"\n");
  write_file(programs_ / "train_lenet", trainer);
  fs::permissions(programs_ / "train_lenet", fs::perms::owner_all);
  const Outcome outcome = run_program(table());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 12);
}

TEST_F(Reproduce, RefusesAFlagThatIsGivenTwiceOrWithoutItsValue) {
  for (const auto& [program, flags, sentence] :
       {std::tuple{"reproduce", "grid --seeds 1 --seeds 2", "reproduce: --seeds: given twice, expected once\n"},
        {"reproduce", "grid --seeds", "reproduce: --seeds: found nothing after it, expected N\n"},
        {"advise", "--seconds 1 --seconds=2", "advise: --seconds: given twice, expected once\n"},
        {"reproduce", "NAME", "reproduce: there is no table 'NAME'"}}) {
    const Outcome outcome = run_program({"/bin/sh", "-c", built_program(program) + ' ' + flags});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.err.starts_with(sentence)) << outcome.err;
  }
}

TEST_F(Reproduce, TrainsOnTheDeviceThatAPersonChooses) {
  ASSERT_EQ(run_program(table({"--device", "cuda:1"})).code, 0);
  EXPECT_EQ(calls().size(), 12);
  EXPECT_EQ(containing(calls(), " --device cuda:1 --log "), 12);
  const auto page = lines_of(results_ / "README.md");
  EXPECT_EQ(containing(page, "--device cuda:1"), 13) << "the table's own command, and those of its runs";
  EXPECT_EQ(containing(page, " cores and cuda:1, tern "), 1);

  const Outcome other = run_program(table());
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("--seed 1 --device cuda:1, expected --variant"), std::string::npos) << other.err;
}

TEST_F(Reproduce, HoldsNoPersonToFlagsOfWhichNothingCame) {
  write_file(programs_ / "fail", "0");
  EXPECT_EQ(run_program(table({"--device", "cuda"})).code, 2);
  fs::remove(programs_ / "fail");
  const Outcome outcome = run_program(table());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Reproduce, RefusesAFolderThatIsNotItsOwn) {
  write_file(programs_ / "hang", "2");
  Process process(table());
  wait_until_it_hangs();
  const Outcome second = run_program(table());
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find(" is in use by another reproduce, expected a folder that is free"), std::string::npos)
      << second.err;
  process.send(SIGINT);
  process.wait();

  auto other = table();
  std::ranges::replace(other, std::string("digits"), std::string("mnist"));
  const Outcome outcome = run_program(words(other, {"--data-dir", programs_}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("holds a run with --variant terngrad --data digits"), std::string::npos) << outcome.err;
}

TEST_F(Reproduce, OverwritesNothingOfOthers) {
  const auto figure = [](const std::string& name, const fs::path& folder) {
    return run_program({built_program("reproduce"), name, "--out", folder});
  };
  const fs::path own = programs_ / "own", folder = programs_ / "folder";
  fs::create_directories(own);
  write_file(own / "README.md", "precious");
  const Outcome refused = figure("terngrad-fig5", own);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("holds other files"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(own / "README.md"), "precious");

  ASSERT_EQ(figure("terngrad-fig5", folder).code, 0);
  const std::string page = read_file(folder / "README.md");
  const Outcome other = figure("qsgd-thm3.2", folder);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("holds terngrad-fig5"), std::string::npos) << other.err;
  EXPECT_EQ(read_file(folder / "README.md"), page);
  EXPECT_EQ(figure("terngrad-fig5", folder).code, 0);
}

TEST_F(Reproduce, GoesOnWithoutAReader) {
  test::Pipe out, err;
  out.close_read_end();
  err.close_read_end();
  const fs::path folder = programs_ / "folder";
  Process program({built_program("reproduce"), "terngrad-fig5", "--out", folder},
                  {.out = out.write_end(), .err = err.write_end()});
  EXPECT_EQ(program.wait().code, 0);
  EXPECT_TRUE(fs::exists(folder / "README.md"));
}

TEST_F(Reproduce, TrainsBesideTheRealProgramSlow) {
  const Outcome outcome = run_program({built_program("reproduce"), "terngrad-fig3", "--data", "digits", "--out",
                                       results_, "--workers", "2", "--seeds", "1", "--iterations", "20"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(results_ / "runs"), {}), 4);
  expect_csv_of_logs();
  const auto first =
      nlohmann::json::parse(lines_of(results_ / "runs/momentum-ternary-2-workers-20-steps-seed-1/log.jsonl").at(0));
  EXPECT_EQ(first["workers"], 2);
  EXPECT_EQ(first["codec"], "ternary");
  EXPECT_EQ(first["exchange"], "server");
  EXPECT_EQ(first["batch_size"], 64);
}

}  // namespace
}  // namespace tern
