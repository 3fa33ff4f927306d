#include "tern/apps/advise/postmortem.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <regex>

#include "tests/apps/train_lenet.h"
#include "tests/support/message_of.h"

namespace tern::advise {
namespace {

using State = OperationRecord::State;
using trainer::FlightFile;

constexpr uint32_t kLast = 4;  // the operation in which the job fails
const std::string kCause = "rank 2 sent nothing for 5 s";

Clock::time_point at(double seconds) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1000 + seconds)));
}

/// A rank that did three operations in the seconds 1, 2 and 3.
FlightFile healthy(int rank, int ranks) {
  FlightFile file = {.host = "node", .process = 100 + rank};
  FlightRecord& record = file.record;
  record = {
      .rank = rank, .size = ranks, .job = {.job = "20261128T120000Z-0000", .clock = ClockOffset{}}, .taken = at(15)};
  record.links.resize(static_cast<size_t>(ranks));
  for (uint32_t sequence = 1; sequence < kLast; ++sequence)
    record.operations.push_back({.message = {sequence, Operation::all_reduce_sum, DType::f32, 1000},
                                 .state = State::done,
                                 .queued = at(sequence),
                                 .started = at(sequence),
                                 .ended = at(sequence + 0.5),
                                 .sources = uint64_t{1} << ((rank + ranks - 1) % ranks)});
  return file;
}

/// A rank that waited for `peer` in the last operation from second 10 on, until the job failed at second 15.
FlightFile waiting(int rank, int ranks, int peer, Operation operation = Operation::all_reduce_sum) {
  FlightFile file = healthy(rank, ranks);
  file.record.job.failure = kCause;
  file.record.job.failed = at(15);
  file.record.wait = WaitRecord{peer, kLast, at(10)};
  file.record.operations.push_back({.message = {kLast, operation, DType::f32, 1000},
                                    .state = State::failed,
                                    .queued = at(9.5),
                                    .started = at(9.5),
                                    .ended = at(15)});
  return file;
}

FlightFile idle(int rank, int ranks) {
  FlightFile file = healthy(rank, ranks);
  file.record.job.failure = kCause;
  file.record.job.failed = at(15.001);
  return file;
}

/// Sets the clock of a rank that waited.
void set_forward(FlightRecord& record, Clock::duration ahead) {
  record.taken += ahead;
  record.job.failed += ahead;
  record.wait->since += ahead;
  for (OperationRecord& each : record.operations)
    for (Clock::time_point* time : {&each.queued, &each.started, &each.ended}) *time += ahead;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_fault(const std::vector<FlightFile>& files, int rank, const std::string& words) {
  const Postmortem::Verdict verdict = Postmortem(files).verdict();
  EXPECT_EQ(verdict.rank, rank) << verdict.sentence;
  EXPECT_TRUE(holds(verdict.sentence, words)) << verdict.sentence;
}

TEST(Postmortem, NamesTheRankWithoutARecord) {
  const std::vector<FlightFile> files = {waiting(0, 4, 3), waiting(1, 4, 0), waiting(3, 4, 2)};
  expect_fault(files, 2,
               "rank 2 left no record, so it was killed or stopped, or its machine was lost; its last message came in "
               "all_reduce_sum 3 of 1000 f32; rank 3 waited for it in all_reduce_sum 4 of 1000 f32 for 5 s");
  const std::string page = Postmortem(files).page();
  EXPECT_TRUE(holds(page, "4 ranks, 3 flight records, none of rank 2\nat fault: rank 2 ")) << page;
  EXPECT_TRUE(holds(page, "the ranks say: " + kCause)) << page;
  EXPECT_TRUE(holds(
      page, "rank 0 (node, process 100): all_reduce_sum 4 of 1000 f32 failed after 5.5 s and waited for rank 3\n"))
      << page;
}

TEST(Postmortem, NamesTheRankThatDidNotComeToTheOperation) {
  FlightFile late = idle(2, 4);
  const std::string words =
      "rank 2 (node, process 102) was in no operation since all_reduce_sum 3 of 1000 f32, which ended 11.5 s before; "
      "rank 3 waited";
  expect_fault({waiting(0, 4, 3), waiting(1, 4, 0), late, waiting(3, 4, 2)}, 2, words);
  // It comes after the job has failed.
  late.record.operations.push_back({.message = {kLast, Operation::all_reduce_sum, DType::f32, 1000},
                                    .state = State::failed,
                                    .queued = at(16),
                                    .started = at(16),
                                    .ended = at(16)});
  late.record.wait = WaitRecord{1, kLast, at(16)};
  expect_fault({waiting(0, 4, 3), waiting(1, 4, 0), late, waiting(3, 4, 2)}, 2, words);
}

TEST(Postmortem, NamesTheConnectionOnWhichBytesStay) {
  FlightFile first = waiting(0, 2, 1), second = waiting(1, 2, 0);
  second.record.links[0] = {.messages_sent = 5, .bytes_sent = 500};
  first.record.links[1] = {.messages_received = 1, .bytes_received = 100};
  expect_fault(
      {first, second}, 0,
      "the connection from rank 1 (node, process 101) to rank 0 (node, process 100): 400 bytes were under way for 5 s");
}

TEST(Postmortem, NamesOperationsThatDiffer) {
  expect_fault(
      {waiting(0, 3, 1), waiting(1, 3, 0, Operation::all_gather), waiting(2, 3, 1)}, 0,
      "ranks 0, 1 wait for each other: rank 0 in all_reduce_sum 4 of 1000 f32, rank 1 in all_gather 4 of 1000 f32");
}

TEST(Postmortem, NamesTheRankThatDoesNotRead) {
  FlightFile sender = waiting(0, 3, -1);
  sender.record.operations.back().targets = 0b110;
  sender.record.links[1].bytes_sent = sender.record.links[2].bytes_sent = 800;
  FlightFile reader = idle(1, 3), deaf = idle(2, 3);
  reader.record.links[0].bytes_received = 800;
  expect_fault({sender, reader, deaf}, 2, "rank 2 (node, process 102) was in no operation since");
  expect_fault({sender, reader}, 2, "rank 2 left no record");
  deaf.record.links[0].bytes_received = 800;
  expect_fault({sender, reader, deaf}, 1, "rank 1 (node, process 101) was in no operation since");
}

TEST(Postmortem, CountsOnTheClockOfRank0) {
  std::vector<FlightFile> files = {waiting(0, 3, 2), idle(1, 3), waiting(2, 3, 1)};
  const auto ahead = std::chrono::seconds(70);
  set_forward(files[2].record, ahead);
  files[2].record.job.clock = ClockOffset{-ahead, std::chrono::microseconds(40)};
  expect_fault(files, 1, "rank 2 waited for it in all_reduce_sum 4 of 1000 f32 for 5 s");
  EXPECT_EQ(Postmortem(files).end(), at(15));
  EXPECT_TRUE(holds(Postmortem(files).page(), "clocks agree within 4e-05 s\n")) << Postmortem(files).page();
}

TEST(Postmortem, CountsByTheCalendarWhereNoClockIsMeasured) {
  std::vector<FlightFile> files = {waiting(0, 3, 2), idle(1, 3), waiting(2, 3, 1)};
  const auto ahead = std::chrono::hours(1000);  // another machine, which has run for longer
  for (FlightFile& file : files) {
    file.record.job.clock.reset();
    file.calendar = std::chrono::hours(9000);
  }
  set_forward(files[2].record, ahead);
  files[2].calendar -= ahead;
  expect_fault(files, 1, "rank 2 waited for it in all_reduce_sum 4 of 1000 f32 for 5 s");
  EXPECT_TRUE(holds(Postmortem(files).page(), "the clocks were not compared\n")) << Postmortem(files).page();
}

// The other ranks compute, and hear of it before they wait. Then each calls an operation, which fails at once.
TEST(Postmortem, NamesAKilledRankForWhichNobodyHadWaited) {
  std::vector<FlightFile> files = {idle(0, 3), idle(1, 3)};
  expect_fault(files, 2, "rank 2 left no record");
  for (FlightFile& file : files) {
    file.record.wait = WaitRecord{1 - file.record.rank, kLast, at(15.2)};
    file.record.operations.push_back({.message = {kLast, Operation::broadcast, DType::f32, 10},
                                      .state = State::failed,
                                      .queued = at(15.2),
                                      .started = at(15.2),
                                      .ended = at(15.2)});
  }
  expect_fault(files, 2, "rank 2 left no record");
}

TEST(Postmortem, WithoutWaitsNamesTheRankThatIsBehind) {
  std::vector<FlightFile> files = {waiting(0, 3, -1), healthy(1, 3), waiting(2, 3, -1)};
  for (FlightFile& file : files) {  // as MPI's communicator records them, on SIGUSR1
    file.record.wait.reset();
    file.record.job.failure = "";
    if (file.record.operations.size() == kLast) file.record.operations.back().state = State::running;
  }
  expect_fault(files, 1, "rank 1 (node, process 101) was in no operation since all_reduce_sum 3");
  for (FlightFile& file : files) file.record.taken = at(9.6);
  EXPECT_FALSE(Postmortem(files).verdict().rank) << "0.1 s is not long";
}

TEST(Postmortem, ARecordOfAnEarlierWishDoesNotCount) {
  FlightFile older = healthy(1, 3);  // written on SIGUSR1, before the job failed
  older.written = "2026-11-28T12:00:00Z";
  older.record.taken = at(4);
  const std::vector<FlightFile> files = {waiting(0, 3, 2), older, waiting(2, 3, 1)};
  expect_fault(files, 1, "rank 1 (node, process 101) left no record");
  const std::string page = Postmortem(files).page();
  EXPECT_TRUE(holds(page, "process 101): no record since 2026-11-28T12:00:00Z: all_reduce_sum 3 of 1000 f32, done"))
      << page;
}

TEST(Postmortem, ARecordThatLiesElsewhereIsNoLostRank) {
  expect_fault({waiting(0, 5, 4)}, 2, "rank 2 left no record");  // the failure names it
  FlightFile other = waiting(0, 5, 4);
  other.record.job.failure = "rank 0 (node, process 100) ended: out of memory";
  const Postmortem::Verdict unknown = Postmortem({other}).verdict();
  EXPECT_FALSE(unknown.rank);
  EXPECT_EQ(unknown.sentence,
            "the fault is unknown: there are no records of ranks 1, 2, 3, 4, bring all together; rank 0 waited for "
            "rank 4 in all_reduce_sum 4 of 1000 f32 for 5 s");
  EXPECT_EQ(Postmortem({healthy(0, 2)}).verdict().sentence, "no rank waits for another") << "one rank had SIGUSR1";
  EXPECT_EQ(Postmortem({healthy(0, 2), healthy(1, 2)}).verdict().sentence,
            "no rank has waited for 1 s, so the job goes on");
}

TEST(Postmortem, TellsAJobThatHangsFromOneThatRuns) {
  std::vector<FlightFile> files = {waiting(0, 2, 1), healthy(1, 2)};
  FlightRecord& record = files[0].record;
  record.job.failure = "";
  record.operations.back().state = State::running;
  record.operations.back().ended = {};
  expect_fault(files, 1, "was in no operation since all_reduce_sum 3");
  EXPECT_TRUE(holds(Postmortem(files).page(), "\nthe others wait for: rank 1 ")) << Postmortem(files).page();
  for (FlightFile& file : files) file.record.taken = at(10.2);
  EXPECT_EQ(Postmortem(files).verdict().sentence, "no rank has waited for 1 s, so the job goes on");
  EXPECT_FALSE(Postmortem(files).verdict().rank);
}

TEST(Postmortem, DoesNotSayThatAJobGoesOnThatStands) {
  std::vector<FlightFile> files = {healthy(0, 2), healthy(1, 2)};
  for (FlightFile& file : files) {
    file.record.operations.push_back({.message = {kLast, Operation::all_reduce_sum, DType::f32, 1000},
                                      .state = State::running,
                                      .queued = at(9.5),
                                      .started = at(9.5)});
    file.record.taken = at(75);
  }
  EXPECT_EQ(Postmortem(files).verdict().sentence, "the records do not tell who is at fault");
}

TEST(Postmortem, DrawsARowForEachRankAndStaysSmall) {
  std::vector<FlightFile> files = {waiting(0, 3, 1), waiting(2, 3, 1)};
  for (FlightFile& file : files)
    for (uint32_t i = 0; i < 1000; ++i)  // 1,000 short operations just before the wait
      file.record.operations.insert(file.record.operations.end() - 1, {.message = {kLast, Operation::barrier},
                                                                       .state = State::done,
                                                                       .queued = at(9),
                                                                       .started = at(9 + i * 1e-4),
                                                                       .ended = at(9 + i * 1e-4 + 9e-5)});
  files[1].record.job.clock = ClockOffset{{}, std::chrono::milliseconds(12)};
  const std::string svg = draw_timeline(Postmortem(files));
  for (const char* part : {">rank 0</text>", ">rank 1</text>", ">no record</text>", ">waits for rank 1</text>",
                           ">± 12 ms</text>", "at fault: rank 1 left no record"})
    EXPECT_TRUE(holds(svg, part)) << part;
  EXPECT_LT(svg.size(), 20'000u);
}

class PostmortemOfLenet : public TrainLenet {
 protected:
  static Outcome postmortem(const std::vector<std::string>& more) {
    std::vector<std::string> words = {built_program("advise"), "postmortem"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
};

TEST_F(PostmortemOfLenet, ReadsTheNewestJobAndRefusesWhatIsNone) {
  const std::string none = postmortem({place("none")}).err;
  EXPECT_TRUE(holds(none, place("none") + ": found no folder, expected one of --checkpoint or --log")) << none;
  const std::string empty = postmortem({folder_.path()}).err;
  EXPECT_TRUE(holds(empty, ": found no flight-*.json, expected a folder of --checkpoint or --log")) << empty;
  FlightFile file = waiting(0, 2, 1);
  trainer::write_flight_file(folder_.path(), file.record);
  file.record.job.job = "20261129T000000Z-ffff";
  const std::string newest = trainer::write_flight_file(folder_.path(), file.record);
  const Outcome read = postmortem({folder_.path(), "--picture", place("at.svg")});
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_TRUE(read.out.starts_with("job 20261129T000000Z-ffff: 2 ranks, 1 flight record, none of rank 1\n"))
      << read.out;
  EXPECT_TRUE(read_file(place("at.svg")).starts_with("<svg"));
  const Outcome over = postmortem({folder_.path(), "--picture", newest});
  EXPECT_TRUE(holds(over.err, "--picture: " + newest + " is a flight record, expected another file")) << over.err;
  const Outcome nowhere = postmortem({folder_.path(), "--picture", place("none/at.svg")});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.out, read.out.substr(0, read.out.find("picture: "))) << "the verdict comes first";
  file = waiting(1, 2, 0);
  file.record.job.job = "20261129T000000Z-ffff";
  const std::string other = trainer::write_flight_file(folder_.path(), file.record);
  write_file(newest, read_file(newest).substr(0, 200));
  const Outcome partly = postmortem({folder_.path()});
  EXPECT_EQ(partly.code, 0) << partly.err;
  EXPECT_TRUE(partly.out.starts_with("job 20261129T000000Z-ffff: 2 ranks, 1 flight record, none of rank 0\n"))
      << partly.out;
  EXPECT_TRUE(holds(partly.out, "\nthe fault is unknown: records are damaged\n")) << partly.out;
  EXPECT_TRUE(holds(partly.out, "left out: " + newest + ": no flight record: ")) << partly.out;
  write_file(other, "");
  const Outcome damaged = postmortem({folder_.path()});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_TRUE(holds(damaged.err, newest + ": no flight record: ")) << damaged.err;
}

TEST_F(PostmortemOfLenet, NamesAStoppedRankOfAJob) {
  Process supervisor(words({"--workers", "4", "--transport", "socket", "--iterations", "1000000", "--dead-after", "1",
                            "--log", place("log"), "--quiet"}));
  const auto wait_for = [&supervisor](const auto& condition) {
    for (const auto end = Clock::now() + std::chrono::minutes(2);
         !condition() && supervisor.running() && Clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(condition());
  };
  wait_for([&] { return std::filesystem::exists(place("log")) && holds(read_file(place("log")), "\"step\":20,"); });
  supervisor.send(SIGUSR1);
  wait_for([&] { return trainer::flight_files(folder_.path()).size() == 4; });
  const Outcome alive = postmortem({folder_.path()});
  EXPECT_EQ(alive.code, 0) << alive.err;
  EXPECT_TRUE(holds(alive.out, "4 ranks, 4 flight records\n")) << alive.out;
  EXPECT_TRUE(supervisor.running());
  const std::string process = std::to_string(supervisor.id());
  std::istringstream children(read_file("/proc/" + process + "/task/" + process + "/children"));
  pid_t ranks[4] = {};
  for (pid_t& rank : ranks) children >> rank;
  ::kill(ranks[1], SIGSTOP);
  const Outcome ended = supervisor.wait();
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(holds(ended.err, "`advise postmortem " + folder_.path().string() + "` tells what each rank did last"))
      << ended.err;
  const Outcome dead = postmortem({folder_.path()});
  EXPECT_EQ(dead.code, 0) << dead.err;
  const std::regex fault("at fault: rank 1 \\(\\S+, process " + std::to_string(ranks[1]) +
                         "\\) left no record, so it was killed or stopped.* its last message came in \\w+ \\d+ of .*; "
                         "rank [023] waited for it in \\w+ \\d+ of ");
  EXPECT_TRUE(std::regex_search(dead.out, fault)) << dead.out;
  EXPECT_TRUE(holds(dead.out, "the ranks say: rank 1 (")) << dead.out;
  EXPECT_TRUE(holds(read_file(place("postmortem.svg")), ">no record</text>"));
}

TEST_F(PostmortemOfLenet, WithoutAFolderEveryRankTellsItsLastOperation) {
  const Outcome ended = run({"--workers", "2", "--transport", "socket", "--iterations", "20", "--lr", "1e30"});
  EXPECT_NE(ended.code, 0);
  EXPECT_TRUE(std::regex_search(ended.err, std::regex("\\[rank 1\\] note: rank 1: \\w+ \\d+ of \\d+ "))) << ended.err;
}

}  // namespace
}  // namespace tern::advise
