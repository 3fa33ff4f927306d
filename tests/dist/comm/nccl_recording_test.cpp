#include <gtest/gtest.h>

#include "tern/dist/comm/failure.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/recording.h"
#include "tests/dist/comm/nccl.h"
#include "tests/dist/comm/transports.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

const Deadlines kRecordedDeadlines = {.heartbeat = std::chrono::milliseconds(100),
                                      .dead_after = std::chrono::seconds(1),
                                      .operation = std::chrono::milliseconds(1500)};

template <int kRanks>
class NcclRecordingOf : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_nccl(kRanks); !missing.empty()) GTEST_SKIP() << missing;
  }
};
using NcclCudaOneRecording = NcclRecordingOf<1>;
using NcclCudaTwoRecording = NcclRecordingOf<2>;

/// Some operations of a rank on its device, with kernels between them.
class Operations {
 public:
  explicit Operations(Communicator& c) : communicator_(c), device_{DeviceType::cuda, c.rank()} {}

  void issue() {
    kernels::add(x_, one_, x_);
    Tensor sum = x_.clone();
    communicator_.all_reduce(sum).wait();
    Tensor all = Tensor::empty({communicator_.size(), 12}, {.device = device_}), previous = Tensor::empty_like(x_);
    const Work gathered = communicator_.all_gather(sum, all);
    const Work shifted = communicator_.shift(x_, previous, Account::overhead);
    gathered.wait();
    shifted.wait();
    kernels::add(all.slice(communicator_.size() - 1, communicator_.size()).reshape({12}), previous, result_);
  }
  std::unique_ptr<Recording> record() {
    return tern::record(device_, [this] { issue(); });
  }
  /// What the device has computed after all that was issued.
  std::vector<float> result() const {
    const std::vector<float> values = result_.to_vector<float>();
    communicator_.confirm();
    return values;
  }

 private:
  Communicator& communicator_;
  Device device_;
  Tensor x_ = Tensor::full({12}, communicator_.rank(), {.device = device_});
  Tensor one_ = Tensor::full({12}, 1, {.device = device_});
  Tensor result_ = Tensor::zeros({12}, {.device = device_});
};

/// The operations of a flight record, after all have ended: their numbers, names and states.
std::vector<std::string> operations_of(const Communicator& c) {
  const auto under_way = [](const OperationRecord& record) { return record.state == OperationRecord::State::running; };
  FlightRecord flight = c.flight_record();
  while (std::ranges::any_of(flight.operations, under_way)) flight = c.flight_record();
  std::vector<std::string> found;
  for (const OperationRecord& record : flight.operations)
    found.push_back(to_string(record.message) + " " + to_string(record.state));
  return found;
}

TEST_F(NcclCudaOneRecording, OfOneRankRunsAgain) {
  const auto errors = with_nccl(make_in_process(1), {}, [&](Communicator& c) {
    Operations operations(c);
    operations.issue();
    const auto recording = operations.record();
    for (uint32_t step = 1; step < 4; ++step) {
      recording->replay(step);
      EXPECT_EQ(operations.result(), std::vector<float>(12, static_cast<float>(2 * (step + 1))));
    }
    operations.issue();
    EXPECT_EQ(operations.result(), std::vector<float>(12, 10));
    EXPECT_EQ(operations_of(c).back(), "shift 18 of f32 done");
  });
  EXPECT_EQ(errors, std::vector<std::string>(1));
}

TEST_F(NcclCudaTwoRecording, AReplayIsForResultsLedgerAndFlightRecordWhatTheCallsAre) {
  struct Seen {
    std::vector<std::vector<float>> results;
    std::vector<Traffic> traffic;
    std::vector<std::string> operations;
  };
  const auto run = [](bool records) {
    std::vector<Seen> seen(2);
    const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
      Seen& own = seen[c.rank()];
      Operations operations(c);
      std::unique_ptr<Recording> recording;
      for (uint32_t step = 0; step < 8; ++step) {
        const Traffic before = c.traffic();
        if (records && step == 2) recording = operations.record();
        EXPECT_EQ(c.traffic(), before) << "a recording does not communicate";
        if (recording && step < 6)
          recording->replay(step);
        else
          operations.issue();
        own.results.push_back(operations.result());
        own.traffic.push_back(c.traffic() - before);
      }
      own.operations = operations_of(c);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
    return seen;
  };
  const auto found = run(true), expected = run(false);
  for (int rank : {0, 1}) {
    EXPECT_EQ(found[rank].results, expected[rank].results);
    EXPECT_EQ(found[rank].operations, expected[rank].operations);
    for (size_t step = 1; step < 8; ++step) EXPECT_EQ(found[rank].traffic[step], expected[rank].traffic[step]) << step;
    EXPECT_EQ(found[rank].results.back(), std::vector<float>(12, rank == 0 ? 17 + 9 : 17 + 8));
  }
}

TEST_F(NcclCudaTwoRecording, RefusesWhatTheRanksHaveNotComparedAndLeavesNothingBehind) {
  const auto errors = with_nccl(make_in_process(2), {}, [](Communicator& c) {
    Operations operations(c);
    const std::string why = message_of<Error>([&] { operations.record(); });
    EXPECT_TRUE(names(why, "all_reduce_sum of 12 f32: the ranks have not compared such an operation yet")) << why;
    Tensor host = Tensor::full({2}, 1);
    const auto on_host = [&] { record({DeviceType::cuda, c.rank()}, [&] { c.all_reduce(host).wait(); }); };
    EXPECT_TRUE(names(message_of<Error>(on_host), "tensors on cpu in work that is being recorded"));
    operations.issue();
    const auto recording = operations.record();
    recording->replay(1);
    EXPECT_EQ(operations.result(), std::vector<float>(12, c.rank() == 0 ? 5 + 3 : 5 + 2));
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

/// Replays on two ranks until rank 1 does `ending` in place of its third replay. Returns what the ranks throw.
template <class Ending>
std::vector<std::string> end_replays(const TransportKind& kind, const Ending& ending) {
  return with_nccl(kind.make(2, kRecordedDeadlines), kRecordedDeadlines, [&](Communicator& c) {
    Operations operations(c);
    operations.issue();
    const auto recording = operations.record();
    for (uint32_t step = 1; step < 6; ++step) {
      if (c.rank() == 1 && step == 3) ending();
      recording->replay(step);
      operations.result();
    }
  });
}

TEST_F(NcclCudaTwoRecording, ARankThatDoesNotReplayIsNamedByTheDeadline) {
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto begin = Clock::now();
    const auto errors = end_replays(kind, [] { std::this_thread::sleep_for(3 * kRecordedDeadlines.operation); });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(errors[0].starts_with("rank 1")) << errors[0];
    EXPECT_TRUE(names(errors[0], "hangs: it lives, but has stood at operation 12")) << errors[0];
    EXPECT_LT(Clock::now() - begin, 4 * kRecordedDeadlines.operation);
  }
}

TEST_F(NcclCudaTwoRecording, ARankThatLeavesEndsTheOthersReplays) {
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto errors = end_replays(kind, [] { throw Error("out of luck"); });
    EXPECT_EQ(errors[1], "out of luck");
    EXPECT_TRUE(errors[0].starts_with("rank 1")) << errors[0];
    EXPECT_TRUE(names(errors[0], "has left")) << errors[0];
  }
}

/// Replays on two ranks until rank 1 fails. Then calls `next` on rank 0, and expects the cause from it.
template <class Next>
void fail_beside_a_recording(const Next& next) {
  const auto errors = with_nccl(make_in_process(2), kRecordedDeadlines, [&](Communicator& c) {
    Operations operations(c);
    operations.issue();
    const auto recording = operations.record();
    recording->replay(1);
    operations.result();
    if (c.rank() == 1) return c.abandon("out of luck");
    while (c.state().failure.empty()) std::this_thread::yield();
    throw Error(message_of<PeerError>([&] { next(operations, *recording); }));
  });
  EXPECT_TRUE(names(errors[0], "out of luck")) << errors[0];
}

TEST_F(NcclCudaTwoRecording, AFailureEndsTheNextReplayBeforeItBegins) {
  fail_beside_a_recording([](Operations&, Recording& recording) {
    const std::string cause = message_of<PeerError>([&] { recording.replay(2); });
    EXPECT_EQ(message_of<PeerError>([&] { recording.replay(2); }), cause);
    recording.replay(2);
  });
}

/// NCCL's end waits for the recording, and the recording lives until the error has left its block.
TEST_F(NcclCudaTwoRecording, AFailureOfAnOperationBesideARecordingIsThrownAtOnce) {
  fail_beside_a_recording([](Operations& operations, Recording&) {
    const auto begin = Clock::now();
    EXPECT_THROW(operations.issue(), PeerError);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
    operations.issue();
  });
}

}  // namespace
}  // namespace tern::test
