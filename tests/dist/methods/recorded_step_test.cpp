#include <gtest/gtest.h>

#include <limits>

#include "tern/dist/methods/data_parallel.h"
#include "tern/kernels/operation_clock.h"
#include "tern/kernels/recording.h"
#include "tests/dist/comm/nccl.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

constexpr int64_t kStepsBefore = 2;  ///< they are issued: they make what is made on first use

class NcclCudaRecordedStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = why_no_nccl(2); !missing.empty()) GTEST_SKIP() << missing;
  }
};

/// One of two ranks that trains on its device, in whole steps. With `records`, all but the first steps are replays.
class RecordedTraining {
 public:
  RecordedTraining(Communicator& c, const DataParallel::Options& options, bool records)
      : communicator_(c),
        records_(records),
        device_{DeviceType::cuda, c.rank()},
        one_(Tensor::full({}, 1, {.device = device_})) {
    model_.initialize(1, DType::f32, device_);
    local_.emplace(model_.parameters(), kSmallSgd);
    method_.emplace(model_, *local_, c, options);
  }

  DataParallel& method() { return *method_; }
  std::vector<float> parameters() { return parameters_of(model_); }
  StateDict momentum() { return local_->state(); }
  StateDict values() { return model_.state(); }

  void steps(int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      const SmallBatch batch = small_batch(step, 12 * communicator_.rank(), 12 * communicator_.rank() + 12);
      train(step, batch.x);
    }
  }
  void train(int64_t step, const Tensor& x) {
    x_.copy_from(x.to(device_));
    method_->begin_step(step);
    local_->begin_step();
    if (!records_ || issued_ < kStepsBefore) {
      ++issued_;
      backward();
      return method_->step();
    }
    if (recording_ == nullptr) {
      recording_ = record(device_, [this] {
        backward();
        method_->issue_step();
      });
      model_.zero_gradients();
    }
    recording_->replay(static_cast<uint32_t>(step));
    method_->end_step();
  }

 private:
  void backward() {
    model_.zero_gradients();
    cross_entropy(model_(Variable(x_)), labels_).backward(one_);
  }

  Communicator& communicator_;
  bool records_;
  Device device_;
  Tensor one_, x_ = Tensor::empty({12, 20}, {.device = device_}), labels_ = small_batch(0, 0, 12).labels.to(device_);
  SmallNet model_;
  std::optional<Sgd> local_;
  std::optional<DataParallel> method_;
  int64_t issued_ = 0;
  std::unique_ptr<Recording> recording_;
};

struct RecordedCase {
  const char* codec;
  const char* exchange;
};
constexpr RecordedCase kRecordedCases[] = {{"none", "ring"},
                                           {"bf16", "ring"},
                                           {"bf16", "reduce-scatter"},
                                           {"fp16", "allgather"},
                                           {"ternary", "allgather"},
                                           {"ternary:share=on", "allgather"},
                                           {"ternary:pack=5trit", "allgather"},
                                           {"ternary:bucket=64", "reduce-scatter"},
                                           {"ternary:pack=5trit", "reduce-scatter"},
                                           {"qsgd:bucket=64", "allgather"},
                                           {"qsgd:bits=8,bucket=100,norm=l2", "allgather"},
                                           {"qsgd:bucket=64,align=field", "allgather"},
                                           {"qsgd:bits=2,bucket=64", "reduce-scatter"},
                                           {"hadamard:bits=1", "allgather"},
                                           {"topk-block:keep=16,side=32,decay=0.9", "allgather-sent"},
                                           {"onebit", "allgather"},
                                           {"topk:ratio=0.1", "allgather"},
                                           {"randk:ratio=0.1", "allgather"},
                                           {"error-feedback:topk:ratio=0.05", "allgather-sent"},
                                           {"error-feedback:randk:ratio=0.1", "allgather"},
                                           {"error-feedback:bf16", "allgather"},
                                           {"error-feedback:ternary", "allgather"},
                                           {"error-feedback:qsgd:bits=2,bucket=64", "allgather"}};

TEST_F(NcclCudaRecordedStep, HasTheBitsTheBytesAndTheOperationsOfAStep) {
  struct Seen {
    std::vector<std::vector<float>> parameters;
    std::vector<uint64_t> payload;
    std::vector<std::string> operations;
  };
  for (const RecordedCase& spec : kRecordedCases) {
    SCOPED_TRACE(testing::Message() << spec.codec << " by " << spec.exchange);
    const DataParallel::Options options = {
        .averaging = {.codec = spec.codec, .exchange = spec.exchange, .fusion = {.fusion_bytes = 2000}, .seed = 5},
        .weight_decay_in_gradient = 0.01,
        .check_every = 3};
    const auto run = [&](bool records) {
      std::vector<Seen> seen(2);
      const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
        Seen& own = seen[c.rank()];
        RecordedTraining training(c, options, records);
        EXPECT_TRUE(training.method().can_be_recorded());
        for (int64_t step = 0; step < 6; ++step) {
          const uint64_t before = c.traffic().sent_payload;
          training.steps(step, step + 1);
          own.parameters.push_back(training.parameters());
          training.method().confirm(step + 1);
          c.confirm();
          own.payload.push_back(c.traffic().sent_payload - before);
        }
        for (const OperationRecord& record : c.flight_record().operations)
          own.operations.push_back(to_string(record.message));
      });
      EXPECT_EQ(errors, std::vector<std::string>(2));
      return seen;
    };
    const auto found = run(true), expected = run(false);
    for (int rank : {0, 1}) {
      EXPECT_EQ(found[rank].parameters, expected[0].parameters);
      EXPECT_EQ(found[rank].payload, expected[rank].payload);
      EXPECT_EQ(found[rank].operations, expected[rank].operations);
    }
  }
}

/// Counts the operations that a thread issues, those of a recording at its making.
class OperationCounter final : public OperationClock {
 public:
  void begin(const char* name) override { count_ += name == nullptr ? 0 : 1; }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};

TEST_F(NcclCudaRecordedStep, IssuesNothingBesideItsGraph) {
  const DataParallel::Options options = {.averaging = {.codec = "ternary", .exchange = "allgather"}, .check_every = 0};
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    RecordedTraining training(c, options, true);
    std::vector<int64_t> counts;
    for (int64_t step = 0; step < 5; ++step) {
      OperationCounter counter;
      const OperationTiming timing(&counter);
      training.steps(step, step + 1);
      counts.push_back(counter.count());
    }
    EXPECT_GT(counts[1], 10);
    EXPECT_EQ(counts[3], 0);
    EXPECT_EQ(counts[4], 0);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST_F(NcclCudaRecordedStep, IsOnlyOfWhatTheDeviceDoesAlone) {
  const DataParallel::Options not_recorded[] = {
      {.averaging = {.codec = "onebit", .exchange = "reduce-scatter"}},
      {.averaging = {.codec = "qsgd:code=elias"}},
      {.averaging = {.codec = "ternary:pack=entropy"}},
      {.averaging = {.codec = "qsgd:code=entropy,align=field"}},
      {.averaging = {.codec = "ternary", .exchange = "server"}},
      {.averaging = {.exchange = "powersgd"}},
      {.averaging = {.overlap = true}},
      {.averaging = {.stale = true}},
  };
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    for (const DataParallel::Options& options : not_recorded)
      EXPECT_FALSE(RecordedTraining(c, options, true).method().can_be_recorded()) << options.averaging.codec;
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  expect_on_ranks(2, [](Communicator& c) {
    EXPECT_FALSE(RecordedTraining(c, {}, true).method().can_be_recorded()) << "its tensors go through the CPU";
  });
}

TEST_F(NcclCudaRecordedStep, GoesOnWithTheStateOfAnother) {
  const DataParallel::Options options = {.averaging = {.codec = "error-feedback:bf16", .exchange = "allgather"},
                                         .check_every = 0};
  const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
    RecordedTraining whole(c, options, true);
    whole.steps(0, 5);
    RecordedTraining rest(c, options, true);
    copy_state(whole.values(), rest.values(), "the model");
    copy_state(whole.momentum(), rest.momentum(), "the optimizer");
    rest.method().load_state(whole.method().state(), 5);
    whole.steps(5, 9);
    rest.steps(5, 9);
    EXPECT_EQ(rest.parameters(), whole.parameters());
    c.confirm();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// The rank whose gradient is at fault learns it when it reads from the device after that step.
TEST_F(NcclCudaRecordedStep, NamesAGradientThatIsNotFinite) {
  for (const char* codec : {"ternary", "hadamard", "bf16", "topk", "randk"}) {
    SCOPED_TRACE(codec);
    const DataParallel::Options options = {.averaging = {.codec = codec, .exchange = "allgather"}, .check_every = 0};
    const auto errors = with_nccl(make_in_process(2), {}, [&](Communicator& c) {
      constexpr int64_t kStep = 5;
      RecordedTraining training(c, options, true);
      training.steps(0, kStep);
      const float value = c.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
      training.train(kStep, Tensor::full({12, 20}, value));
      training.parameters();
      EXPECT_NO_THROW(training.method().confirm(kStep));
      const std::string why = message_of<InputError>([&] { training.method().confirm(kStep + 1); });
      EXPECT_EQ(names(why, "gradient of '") && names(why, "has NaN or infinite elements"), c.rank() == 1) << why;
      training.steps(kStep + 1, kStep + 2);
      training.parameters();
      EXPECT_EQ(message_of<InputError>([&] { training.method().confirm(kStep + 1); }), why) << "the first step counts";
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
  }
}

}  // namespace
}  // namespace tern::test
