#include "tern/dist/comm/flight_record.h"

#include <gtest/gtest.h>

#include "tern/dist/comm/failure.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

using State = OperationRecord::State;
using std::chrono::milliseconds;

const Deadlines kRecordDeadlines = {
    .heartbeat = milliseconds(20), .dead_after = milliseconds(500), .operation = milliseconds(400)};

TEST(FlightRecord, HasTheOperationsOfEveryTransport) {
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    std::vector<FlightRecord> records(3);
    const auto errors = with_communicators(kind.make(3, kRecordDeadlines), [&](Communicator& c) {
      Tensor x = Tensor::full({30}, 1), part = Tensor::full({10}, c.rank());
      c.all_reduce(x).wait();
      c.all_gather(part, x, Account::overhead).wait();
      c.scatter(x, part, 1).wait();
      std::this_thread::sleep_for(5 * kRecordDeadlines.heartbeat);
      records[c.rank()] = c.flight_record();
    });
    EXPECT_EQ(errors, std::vector<std::string>(3));
    for (const FlightRecord& record : records) {
      const int previous = (record.rank + 2) % 3;
      const uint64_t others = 0b111u & ~(1u << record.rank);
      EXPECT_EQ(record.size, 3);
      EXPECT_EQ(record.job.job, records[0].job.job);
      EXPECT_FALSE(record.job.job.empty());
      EXPECT_EQ(record.job.failure, "");
      ASSERT_TRUE(record.job.clock);
      EXPECT_LE(std::chrono::abs(record.job.clock->offset), record.job.clock->error) << "all ranks share a clock";
      EXPECT_FALSE(record.wait);
      ASSERT_EQ(record.operations.size(), 3);
      const OperationRecord& sum = record.operations[0];
      EXPECT_EQ(to_string(sum.message), "all_reduce_sum 1 of 30 f32");
      EXPECT_EQ(sum.state, State::done);
      EXPECT_LE(sum.queued, sum.started);
      EXPECT_LT(sum.started, sum.ended);
      EXPECT_LE(sum.ended, record.taken);
      EXPECT_EQ(sum.sent, 2 * 30 * sizeof(float));
      EXPECT_EQ(sum.received, sum.sent);
      EXPECT_EQ(sum.targets, others);
      EXPECT_EQ(sum.sources, others);
      EXPECT_EQ(record.operations[1].message.account, Account::overhead);
      const OperationRecord& scatter = record.operations[2];
      EXPECT_EQ(scatter.targets, record.rank == 1 ? 0b101u : 0u);
      EXPECT_EQ(scatter.sources, record.rank == 1 ? 0u : 0b010u);
      EXPECT_EQ(record.links[previous].bytes_received, records[previous].links[record.rank].bytes_sent);
      EXPECT_EQ(record.links[previous].messages_received, records[previous].links[record.rank].messages_sent);
      EXPECT_EQ(record.links[record.rank].messages_sent, 0u);
    }
  }
}

TEST(FlightRecord, TellsForWhomARankWaitedWhenTheJobFailed) {
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    std::vector<FlightRecord> records(3);
    with_communicators(kind.make(3, kRecordDeadlines), [&](Communicator& c) {
      Tensor x = Tensor::full({30}, 1);
      c.all_reduce(x).wait();
      if (c.rank() == 1) std::this_thread::sleep_for(2 * kRecordDeadlines.operation);
      try {
        c.all_reduce(x).wait();
      } catch (const PeerError& error) {
        records[c.rank()] = c.flight_record();
        EXPECT_EQ(records[c.rank()].job.failure, error.what());
      }
    });
    const FlightRecord& waiting = records[2];
    ASSERT_EQ(waiting.operations.size(), 2);
    EXPECT_EQ(waiting.operations[1].state, State::failed);
    EXPECT_GE(waiting.operations[1].ended - waiting.operations[1].started, kRecordDeadlines.operation / 2);
    ASSERT_TRUE(waiting.wait);
    EXPECT_EQ(waiting.wait->peer, 1);
    EXPECT_EQ(waiting.wait->sequence, 2u);
    EXPECT_EQ(records[0].job.failure, records[1].job.failure);
    EXPECT_EQ(records[0].job.failure, records[2].job.failure);
  }
}

TEST(FlightRecord, AnotherThreadSeesAnOperationThatRuns) {
  Transports transports = make_in_process(2);
  FlightRecord seen;
  const auto errors = with_communicators(std::move(transports), [&](Communicator& c) {
    Tensor x = Tensor::full({1}, 1);
    if (c.rank() == 0) {
      const Work work = c.all_reduce(x);
      const auto runs = [&] {
        seen = c.flight_record();
        return seen.wait && seen.operations.at(0).state == State::running;
      };
      for (const auto end = Clock::now() + std::chrono::seconds(20); !runs() && Clock::now() < end;)
        std::this_thread::yield();
      c.barrier();  // queued behind it
      seen = c.flight_record();
      work.wait();
    } else {
      std::this_thread::sleep_for(milliseconds(100));
      c.all_reduce(x).wait();
      c.barrier().wait();
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  ASSERT_EQ(seen.operations.size(), 2);
  EXPECT_EQ(seen.operations[0].state, State::running);
  EXPECT_EQ(seen.wait->peer, 1);
  EXPECT_EQ(seen.operations[1].state, State::queued);
  EXPECT_EQ(seen.operations[1].started, Clock::time_point());
}

TEST(FlightRecord, KeepsTheLastThousand) {
  const auto errors = with_communicators(make_in_process(1), [&](Communicator& c) {
    Tensor x = Tensor::full({1}, 1);
    for (int i = 0; i < 2500; ++i) c.all_reduce(x).wait();
    const FlightRecord record = c.flight_record();
    ASSERT_EQ(record.operations.size(), FlightRecorder::kKept);
    EXPECT_EQ(record.operations.front().message.sequence, 1501u);
    EXPECT_EQ(record.operations.back().message.sequence, 2500u);
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

// Ranks may give different numbers of elements, so no rank knows the number of all.
TEST(FlightRecord, HasTheRanksOwnElementsIfRanksMayGiveOthers) {
  const auto errors = with_communicators(make_in_process(2), [](Communicator& c) {
    const bool first = c.rank() == 0;
    const Tensor x = Tensor::full({first ? 30 : 20}, 1);
    Tensor y = Tensor::empty({first ? 20 : 30});
    c.shift(x, y).wait();
    c.all_to_all(x, first ? std::vector<int64_t>{0, 30} : std::vector<int64_t>{20, 0}, y,
                 first ? std::vector<int64_t>{0, 20} : std::vector<int64_t>{30, 0})
        .wait();
    const FlightRecord record = c.flight_record();
    ASSERT_EQ(record.operations.size(), 2);
    for (const OperationRecord& operation : record.operations) EXPECT_EQ(operation.message.count, first ? 30u : 20u);
    EXPECT_EQ(to_string(record.operations[0].message), "shift 1 of f32");
    EXPECT_EQ(to_string(record.operations[1].message), "all_to_all 2 of f32");
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace
}  // namespace tern::test
