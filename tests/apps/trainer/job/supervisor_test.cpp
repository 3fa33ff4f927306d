#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "tests/apps/train_lenet.h"

namespace tern {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Arguments = std::vector<std::string>;

std::vector<pid_t> children_of(pid_t id) {
  const std::string process = std::to_string(id);
  std::ifstream file("/proc/" + process + "/task/" + process + "/children");
  std::vector<pid_t> found;
  for (pid_t child; file >> child;) found.push_back(child);
  return found;
}

/// The four ranks that a supervisor has started. Waits for them; fewer if they do not start within half a minute.
std::vector<pid_t> four_ranks_of(const Process& supervisor) {
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  std::vector<pid_t> ranks = children_of(supervisor.id());
  while (ranks.size() < 4 && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
    ranks = children_of(supervisor.id());
  }
  EXPECT_EQ(ranks.size(), 4);
  return ranks;
}

bool runs(pid_t id) { return ::kill(id, 0) == 0; }

/// Runs jobs of four processes. A test stops or kills one of them.
class TrainLenetSupervisor : public TrainLenet {
 protected:
  Arguments job(const Arguments& more) const {
    Arguments all = words({"--workers", "4", "--transport", "socket", "--log", place("log"), "--quiet"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void wait_for_steps(int64_t steps) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::string text = std::filesystem::exists(place("log")) ? read_file(place("log")) : "";
      if (text.find("\"step\":" + std::to_string(steps) + ",") != std::string::npos) return;
      std::this_thread::sleep_for(milliseconds(5));
    }
    FAIL() << "never came to step " << steps;
  }
  /// Sends a signal to one rank of a training job. Expects the job to end within `limit`.
  Outcome outcome_of_signal(int rank, int signal, Clock::duration limit) const {
    std::filesystem::remove(place("log"));
    Process supervisor(job({"--iterations", "1000000", "--dead-after", "1"}));
    wait_for_steps(3);
    const auto ranks = children_of(supervisor.id());
    EXPECT_EQ(ranks.size(), 4);
    const auto begin = Clock::now();
    ::kill(ranks.at(static_cast<size_t>(rank)), signal);
    const Outcome outcome = supervisor.wait();
    EXPECT_LT(Clock::now() - begin, limit);
    for (const pid_t id : ranks) EXPECT_FALSE(runs(id)) << "a rank outlived its supervisor";
    return outcome;
  }
  /// The messages about `rank` in `err`. Each starts after the prefix "[rank N] ".
  static std::vector<std::string> causes(const std::string& err, int rank) {
    std::vector<std::string> found;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);) {
      const size_t cause = line.find("train_lenet: rank " + std::to_string(rank) + " (");
      if (line.starts_with("[rank ") && cause != std::string::npos) found.push_back(line.substr(cause));
    }
    return found;
  }
  /// What the three other ranks say about `rank`. They say the same sentence, and the job prints it once.
  static std::string common_cause(const Outcome& outcome, int rank) {
    const auto told = causes(outcome.err, rank);
    EXPECT_EQ(told.size(), 1) << outcome.err;
    return told.empty() ? "" : told.front();
  }
};

TEST_F(TrainLenetSupervisor, AKilledRankIsTheSameCauseToAll) {
  for (const int rank : {2, 0})
    for (const int signal : {SIGKILL, SIGABRT}) {
      const Outcome outcome = outcome_of_signal(rank, signal, std::chrono::seconds(5));
      EXPECT_EQ(outcome.code, 3) << outcome.err;
      const std::string told = common_cause(outcome, rank);
      EXPECT_NE(told.find("closed its connection"), std::string::npos) << told;
      EXPECT_NE(outcome.err.find("was ended by signal " + std::to_string(signal)), std::string::npos) << outcome.err;
    }
}

TEST_F(TrainLenetSupervisor, AStoppedRankIsTheSameCauseToAllAndIsEnded) {
  for (const int rank : {1, 0}) {
    const Outcome outcome = outcome_of_signal(rank, SIGSTOP, std::chrono::seconds(8));
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const std::string told = common_cause(outcome, rank);
    EXPECT_NE(told.find("sent nothing for 1 s"), std::string::npos) << told;
    EXPECT_NE(outcome.err.find("is stopped: killing it"), std::string::npos) << outcome.err;
  }
}

// Only the supervisor can see that these ranks are stopped.
TEST_F(TrainLenetSupervisor, ARankThatIsStoppedBeforeItHasJoinedEndsTheJob) {
  for (const size_t first : {size_t{3}, size_t{0}}) {
    Process supervisor(job({"--dead-after", "1"}));
    const std::vector<pid_t> ranks = four_ranks_of(supervisor);
    const auto begin = Clock::now();
    std::for_each(ranks.begin() + static_cast<std::ptrdiff_t>(first), ranks.end(),
                  [](pid_t id) { ::kill(id, SIGSTOP); });
    const Outcome outcome = supervisor.wait();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "1 s and what a busy machine takes";
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    for (size_t rank = first; rank < 4; ++rank)
      EXPECT_NE(outcome.err.find("train_lenet: rank " + std::to_string(rank) + " (process " +
                                 std::to_string(ranks[rank]) + ") is stopped: killing it"),
                std::string::npos)
          << outcome.err;
    for (const pid_t id : ranks) EXPECT_FALSE(runs(id));
  }
}

TEST_F(TrainLenetSupervisor, RanksEndWithASupervisorThatIsKilled) {
  Process supervisor(job({"--iterations", "1000000"}));
  wait_for_steps(2);
  const auto ranks = children_of(supervisor.id());
  ASSERT_EQ(ranks.size(), 4);
  supervisor.send(SIGKILL);
  supervisor.wait();
  for (int i = 0; i < 400 && std::ranges::any_of(ranks, runs); ++i) std::this_thread::sleep_for(milliseconds(5));
  for (const pid_t id : ranks) EXPECT_FALSE(runs(id));
}

TEST_F(TrainLenetSupervisor, RanksBearTheProgramsName) {
  Process supervisor(job({"--iterations", "1000000"}));
  wait_for_steps(1);
  for (const pid_t id : children_of(supervisor.id()))
    EXPECT_EQ(read_file("/proc/" + std::to_string(id) + "/comm"), "train_lenet\n");
}

TEST_F(TrainLenetSupervisor, AnInterruptStopsAllRanksAtOneStep) {
  const Arguments recipe = {"--workers", "4", "--epochs", "3", "--codec", "error-feedback:ternary"};
  const auto unbroken = train(recipe);
  const Arguments job_recipe = {"--epochs", "3", "--codec", "error-feedback:ternary", "--checkpoint", place("run")};
  for (const auto& [to_one_rank, signal] : {std::pair(false, SIGINT), std::pair(true, SIGTERM)}) {
    std::filesystem::remove_all(place("run"));
    std::filesystem::remove(place("log"));
    Process supervisor(job(job_recipe));
    wait_for_steps(3);
    if (to_one_rank)
      ::kill(children_of(supervisor.id()).at(2), signal);
    else
      supervisor.send(signal);
    const Outcome outcome = supervisor.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("[rank 0] train_lenet: interrupted after step ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_LT(losses(place("log")).size(), unbroken.size());
    Arguments again = job_recipe;
    again.emplace_back("--resume");
    ASSERT_EQ(run_program(job(again)).code, 0);
    EXPECT_EQ(losses(place("log")), unbroken);
  }
}

TEST_F(TrainLenetSupervisor, RestartsFromTheLastCheckpointBitForBit) {
  const Arguments recipe = {"--epochs", "3", "--codec", "error-feedback:ternary", "--optimizer", "momentum"};
  Arguments threads = {"--workers", "4", "--save", place("unbroken")};
  threads.insert(threads.end(), recipe.begin(), recipe.end());
  const auto unbroken = train(threads);
  Arguments restarting = {"--checkpoint",   place("run"),  "--checkpoint-every", "5",
                          "--max-restarts", "2",           "--dead-after",       "1",
                          "--save",         place("saved")};
  restarting.insert(restarting.end(), recipe.begin(), recipe.end());
  Process supervisor(job(restarting));
  wait_for_steps(13);
  ::kill(children_of(supervisor.id()).at(3), SIGKILL);
  wait_for_steps(24);
  ::kill(children_of(supervisor.id()).at(0), SIGKILL);
  const Outcome outcome = supervisor.wait();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("restart 1 of 2, from " + place("run/step-")), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("restart 2 of 2, from " + place("run/step-")), std::string::npos) << outcome.err;
  EXPECT_EQ(losses(place("log")), unbroken);
  EXPECT_EQ(read_file(place("saved")), read_file(place("unbroken")));
}

// The ranks of the first start read the token's file. The ranks of a restart do not need it.
TEST_F(TrainLenetSupervisor, RestartsWithoutTheTokensFile) {
  const std::string token = place("token");
  write_file(token, "0123456789abcdef0123456789abcdef\n");
  ::chmod(token.c_str(), 0600);
  ::setenv("TERN_TOKEN_FILE", token.c_str(), 1);
  Process supervisor(job({"--epochs", "3", "--checkpoint", place("run"), "--max-restarts", "1", "--dead-after", "1"}));
  ::unsetenv("TERN_TOKEN_FILE");
  wait_for_steps(3);
  std::filesystem::remove(token);
  ::kill(children_of(supervisor.id()).at(1), SIGKILL);
  const Outcome outcome = supervisor.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("restart 1 of 1"), std::string::npos) << outcome.err;
}

TEST_F(TrainLenetSupervisor, ARankThatFindsBadInputIsTheCause) {
  std::filesystem::remove(data_ / "train-labels-idx1-ubyte");
  const Outcome outcome = run_program(job({"--iterations", "3"}));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("train-labels-idx1-ubyte"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << "one sentence for all ranks:\n" << outcome.err;
}

// The interrupt comes before the ranks are ready for it, while they join, or in their first steps.
TEST_F(TrainLenetSupervisor, AnEarlyInterruptIsNoLostRank) {
  for (const int delay : {0, 2, 5, 10, 20, 40, 80, 120, 160, 200, 250, 300}) {
    SCOPED_TRACE(std::to_string(delay) + " ms");
    Process supervisor(job({"--iterations", "1000000"}));
    ASSERT_EQ(four_ranks_of(supervisor).size(), 4);
    std::this_thread::sleep_for(milliseconds(delay));
    supervisor.send(delay % 20 == 0 ? SIGTERM : SIGINT);
    const Outcome outcome = supervisor.wait();
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("[rank 0] train_lenet: interrupted after step ")) << outcome.err;
  }
}

TEST_F(TrainLenetSupervisor, AnEarlySignalToOneRankIsNoLostRank) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    for (const int delay : {0, 5, 40}) {
      SCOPED_TRACE(std::to_string(delay) + " ms");
      Process supervisor(job({"--iterations", "1000000"}));
      const std::vector<pid_t> ranks = four_ranks_of(supervisor);
      std::this_thread::sleep_for(milliseconds(delay));
      ::kill(ranks.at(2), signal);
      const Outcome outcome = supervisor.wait();
      EXPECT_EQ(outcome.code, 130) << outcome.err;
      EXPECT_TRUE(outcome.err.starts_with("[rank 0] train_lenet: interrupted after step ")) << outcome.err;
    }
}

// `timeout` sends a signal to the process and to its group. Both reach the same process.
TEST_F(TrainLenetSupervisor, ASignalThatComesTwiceAtOnceIsOne) {
  Process supervisor(job({"--iterations", "1000000"}));
  wait_for_steps(2);
  for (int i = 0; i < 3; ++i) {
    supervisor.send(SIGTERM);
    std::this_thread::sleep_for(milliseconds(1));
  }
  const Outcome outcome = supervisor.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("[rank 0] train_lenet: interrupted after step ")) << outcome.err;
}

TEST_F(TrainLenetSupervisor, ARankThatIgnoresAnInterruptIsKilledAfterTheGracePeriod) {
  // The first step of these ranks would take hours.
  Process supervisor(job({"--link", "rate=1kbit", "--dead-after", "1000", "--grace", "1"}));
  const std::vector<pid_t> ranks = four_ranks_of(supervisor);
  std::this_thread::sleep_for(milliseconds(500));
  supervisor.send(SIGTERM);
  ASSERT_TRUE(supervisor.ends_within(std::chrono::seconds(30)));
  const Outcome outcome = supervisor.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("did not end within 1 s of its last progress: killing it"), std::string::npos)
      << outcome.err;
  for (const pid_t id : ranks) EXPECT_FALSE(runs(id));
}

TEST_F(TrainLenetSupervisor, AStoppedRankDelaysAnInterruptByTheGracePeriodAtMost) {
  Process supervisor(job({"--iterations", "1000000", "--dead-after", "200", "--grace", "1"}));
  wait_for_steps(2);
  ::kill(children_of(supervisor.id()).at(1), SIGSTOP);
  supervisor.send(SIGINT);
  ASSERT_TRUE(supervisor.ends_within(std::chrono::seconds(30)));
  const Outcome outcome = supervisor.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
}

// nohup starts programs in this way.
TEST_F(TrainLenetSupervisor, AnIgnoredHangUpStaysIgnored) {
  for (const Arguments& form : {Arguments{"--workers", "4", "--transport", "socket"}, Arguments{}}) {
    std::filesystem::remove(place("log"));
    Arguments flags = {"--epochs", "4", "--log", place("log"), "--quiet"};
    flags.insert(flags.end(), form.begin(), form.end());
    Arguments command = words(flags);
    command.insert(command.begin(), {"/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"});
    Process program(command);
    wait_for_steps(2);
    program.send(SIGHUP);
    for (const pid_t id : children_of(program.id())) ::kill(id, SIGHUP);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(losses(place("log")).size(), 48);
  }
}

TEST_F(TrainLenetSupervisor, AHangUpEndsTheJobAfterItsStep) {
  Process supervisor(job({"--iterations", "1000000"}));
  wait_for_steps(2);
  supervisor.send(SIGHUP);
  const Outcome outcome = supervisor.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("[rank 0] train_lenet: interrupted after step ")) << outcome.err;
}

}  // namespace
}  // namespace tern
