#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/networks/mlp.h"
#include "tern/trainer/run/trainer.h"
#include "tests/support/log.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

using namespace trainer;

/// The communicator of one rank. From the call `failing` of `confirm` on, an operation has failed. One thread.
class Doubtful final : public Communicator {
 public:
  explicit Doubtful(int failing) : inner_(std::move(make_in_process(1)[0])), failing_(failing) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Traffic traffic() const override { return inner_.traffic(); }
  JobState state() const override { return inner_.state(); }
  FlightRecord flight_record() const override { return inner_.flight_record(); }
  void abandon(const std::string& cause) override { inner_.abandon(cause); }
  void confirm() const override {
    if (++calls_ >= failing_) throw PeerError("rank 1 is lost");
  }

 private:
  Work start(const CollectiveCall& call) override { return inner_.start(call); }

  TransportCommunicator inner_;
  int failing_;
  mutable int calls_ = 0;
};

// What training read from a device before an operation failed goes nowhere.
TEST(Confirm, ComesBeforeTheLogTheCheckpointAndTheModel) {
  struct Case {
    int failing;
    size_t steps, evaluations;
    bool checkpoint, model;
  };
  const Case cases[] = {{1, 0, 0, false, false},
                        {3, 2, 0, false, false},
                        {4, 2, 0, false, false},
                        {5, 2, 0, true, false},
                        {6, 2, 1, true, true}};
  TrainSettings settings;
  settings.data = "digits";
  settings.batch_size = 16;
  settings.iterations = 2;
  settings.eval_every = 100;
  settings.threads = 1;
  settings.workers = 1;
  settings.quiet = true;
  const Application application = {.name = "test", .model = [](const ModelSpec& spec) -> std::unique_ptr<Layer> {
                                     return std::make_unique<networks::Mlp>(networks::Mlp::Options{
                                         .widths = {spec.images.numel(), 10}, .norm = networks::MlpNorm::none});
                                   }};
  const RunData data = load_run_data(settings);
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.failing);
    const TemporaryFolder folder;
    settings.checkpoint = folder.path() / "run";
    settings.save = folder.path() / "model";
    settings.log = folder.path() / "log";
    Doubtful communicator(expected.failing);
    const InterruptGuard interrupt;
    LineWriter out(STDOUT_FILENO);
    const auto train = [&] {
      Trainer(application, settings, {.data = data, .interrupt = interrupt, .out = out, .communicator = &communicator})
          .train();
    };
    if (expected.model)
      train();
    else
      EXPECT_EQ(message_of<PeerError>(train), "rank 1 is lost");
    EXPECT_EQ(read_log(settings.log, "step").size(), expected.steps);
    EXPECT_EQ(read_log(settings.log, "eval").size(), expected.evaluations);
    EXPECT_EQ(std::filesystem::exists(settings.checkpoint + "/step-00000002.tern"), expected.checkpoint);
    EXPECT_EQ(std::filesystem::exists(settings.save), expected.model);
  }
}

}  // namespace
}  // namespace tern
