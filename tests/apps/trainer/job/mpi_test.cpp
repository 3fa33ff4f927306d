#include "tern/dist/comm/mpi.h"
#include "tern/trainer/rank/flight.h"
#include "tests/apps/train_lenet.h"
#include "tests/apps/trainer/job/methods.h"
#include "tests/support/mpirun.h"

namespace tern {
namespace {

using Arguments = std::vector<std::string>;

/// Runs train_lenet as ranks of an MPI job.
class TrainLenetMpi : public TrainLenet {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_mpi(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static Arguments joined(Arguments a, const Arguments& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  Arguments command(int ranks, const Arguments& flags) const {
    return mpirun(ranks, words(joined({"--transport", "mpi"}, flags)));
  }
  Outcome run_ranks(int ranks, const Arguments& flags) const { return run_program(command(ranks, flags)); }

  /// The losses of a run, its payload and its scores.
  struct Result {
    std::map<int64_t, double> losses;
    int64_t payload = 0;
    double accuracy = 0;
  };
  Result result() const {
    const auto last = read_log(place("train.jsonl")).back();
    return {losses(place("train.jsonl")), last["bytes_sent_payload"], last["accuracy"]};
  }
  Result train_ranks(int ranks, const Arguments& flags) const {
    const Outcome outcome = run_ranks(ranks, joined(flags, {"--log", place("train.jsonl"), "--quiet"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    return result();
  }
  /// Trains on three ranks, until one of them runs a shell's command on itself.
  Outcome train_until(int rank, const std::string& command) const {
    // The log tells that the ranks have joined.
    const std::string later = "[ $OMPI_COMM_WORLD_RANK != " + std::to_string(rank) + " ] || (until [ -s " +
                              place("train.jsonl") + " ]; do sleep 0.1; done; " + command + ") & exec \"$@\"";
    const Arguments flags = words({"--transport", "mpi", "--epochs", "10000", "--batch-size", "12", "--dead-after", "2",
                                   "--log", place("train.jsonl"), "--quiet"});
    Process job(mpirun(3, joined({"/bin/bash", "-c", later, "-"}, flags)));
    EXPECT_TRUE(job.ends_within(std::chrono::seconds(60)));
    return job.wait();
  }
};

// Sums of floats have MPI's own order. As with other numbers of ranks, the losses then differ by rounding.
TEST_F(TrainLenetMpi, GivesTheLossesThePayloadAndTheAccuracyOfSocketsSlow) {
  for (const Arguments& method : kWorkerMethods) {
    SCOPED_TRACE(testing::PrintToString(method));
    const Arguments recipe = joined({"--iterations", "8"}, method);
    train(joined({"--workers", "4", "--transport", "socket"}, recipe));
    const Result expected = result();
    const Result found = train_ranks(4, recipe);
    ASSERT_EQ(found.losses.size(), 8);
    EXPECT_EQ(found.payload, expected.payload);
    for (const auto& [step, loss] : expected.losses) EXPECT_NEAR(found.losses.at(step), loss, 1e-5 * loss) << step;
    EXPECT_EQ(found.accuracy, expected.accuracy);
  }
}

TEST_F(TrainLenetMpi, SaysAtTheStartWhatMovesTheBytesAndWhatProtectsThem) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome = run_ranks(ranks, {"--iterations", "2", "--batch-size", "12", "--codec", "ternary"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string workers = std::to_string(ranks) + (ranks == 1 ? " worker" : " workers");
    for (const std::string& part :
         {workers + " (processes, " + mpi_version() + ")", std::string("MPI sends unprotected, and there is no token"),
          std::string("bytes sent ")})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in: " << outcome.out;
  }
}

TEST_F(TrainLenetMpi, GoesOnFromACheckpointOfAllRanks) {
  const Arguments recipe = {"--epochs", "2", "--codec", "error-feedback:ternary"};
  const auto unbroken = train(joined({"--workers", "4"}, recipe));
  std::filesystem::remove(place("train.jsonl"));
  const Arguments run_in = joined(recipe, {"--checkpoint", place("run"), "--checkpoint-every", "10"});
  EXPECT_EQ(train_ranks(4, run_in).losses, unbroken);
  std::filesystem::remove(place("run/step-00000024.tern"));
  std::filesystem::remove(place("train.jsonl"));
  const auto rest = train_ranks(4, joined(run_in, {"--resume", "--plot", place("curves.svg")})).losses;
  ASSERT_EQ(rest.size(), 4);
  for (const auto& [step, loss] : rest) EXPECT_EQ(loss, unbroken.at(step)) << step;
  EXPECT_TRUE(std::filesystem::exists(place("curves.svg")));
}

TEST_F(TrainLenetMpi, RefusesWhatItCannotDo) {
  const std::pair<Arguments, std::string> table[] = {
      {{"--link", "rate=1gbit"}, "--link would change nothing: it does not affect what MPI moves"},
      {{"--wire", "tls"}, "--wire would change nothing: it belongs to --transport socket and nccl"},
      {{"--bind", "127.0.0.1"}, "--bind would change nothing: it belongs to --transport socket and nccl"},
      {{"--max-restarts", "1"}, "--max-restarts would change nothing: the ranks were started by Open MPI"},
      {{"--workers", "3"}, "--workers: found 3, expected 2, as started by Open MPI"},
      {{"--rank", "0", "--world-size", "2", "--master", "127.0.0.1:9"},
       "--transport mpi: found --rank, --world-size and --master, expected none"},
  };
  for (const auto& [flags, sentence] : table) {
    const Outcome outcome = run_ranks(2, flags);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_NE(outcome.err.find("train_lenet: " + sentence), std::string::npos) << outcome.err;
  }
}

TEST_F(TrainLenetMpi, NeedsALauncherOfItsOwnMpi) {
  const Outcome alone = run({"--workers", "4", "--transport", "mpi"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.err,
            "train_lenet: --transport mpi: no launcher of MPI started this process, expected for example: mpirun -n 4 "
            "PROGRAM --transport mpi\n");
  if (!mpi_version().starts_with("Open MPI")) GTEST_SKIP() << "the variables below are those of another MPI";
  const Outcome other = run_program(joined(
      {"/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PMI_RANK=1", "PMI_SIZE=2"},
      words({"--transport", "mpi"})));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find(mpi_version() + " says rank 0 of 1, MPICH (PMI_RANK, PMI_SIZE) say rank 1 of 2"),
            std::string::npos)
      << other.err;
}

// A limit of 1 KiB per file acts like a full disk.
TEST_F(TrainLenetMpi, ARankThatCannotWriteEndsTheJobAndSaysWhy) {
  const Outcome outcome = train_until(0, "prlimit --pid $$ --fsize=1024");
  EXPECT_EQ(outcome.code, kMpiAborted);
  EXPECT_NE(outcome.err.find("tern: rank 0 ended: --log: " + place("train.jsonl") + ": cannot be written: "),
            std::string::npos)
      << outcome.err;
}

TEST_F(TrainLenetMpi, AStoppedRankEndsTheJobWithinDeadAfter) {
  const Outcome outcome = train_until(1, "kill -STOP $$");
  EXPECT_EQ(outcome.code, kMpiAborted);
  EXPECT_NE(outcome.err.find("tern: rank 1 is silent for "), std::string::npos) << outcome.err;
  // The first rank that finds the cause ends the job. The records of ranks that it ends may have other causes.
  std::string failures;
  for (const auto& path : trainer::flight_files(folder_.path()))
    failures += "\n" + trainer::read_flight_file(path).record.job.failure;
  EXPECT_NE(failures.find("\nrank 1 is silent for "), std::string::npos) << failures;
}

}  // namespace
}  // namespace tern
