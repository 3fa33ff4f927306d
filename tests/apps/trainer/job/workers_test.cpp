#include <csignal>
#include <functional>
#include <set>
#include <thread>

#include "tern/dist/comm/socket.h"
#include "tern/optim/checkpoint.h"
#include "tests/apps/train_lenet.h"
#include "tests/apps/trainer/job/methods.h"

namespace tern {
namespace {

using Arguments = std::vector<std::string>;

/// Runs several ranks that train LeNet together.
class TrainLenetWorkers : public TrainLenet {
 protected:
  TrainLenetWorkers() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }  // the job token is stored there

  static Arguments workers(int count, const Arguments& more) {
    Arguments all = {"--workers", std::to_string(count)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static Arguments joined(Arguments a, const Arguments& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  /// Starts each rank by itself, with its own environment variables and flags. Returns the outcome of each rank.
  std::vector<Outcome> run_ranks(const std::vector<Arguments>& variables, const std::vector<Arguments>& flags) const {
    std::vector<std::unique_ptr<Process>> ranks;
    for (size_t rank = 0; rank < variables.size(); ++rank)
      ranks.push_back(std::make_unique<Process>(joined(joined({"/usr/bin/env"}, variables[rank]), words(flags[rank]))));
    std::vector<Outcome> outcomes;
    for (const auto& rank : ranks) outcomes.push_back(rank->wait());
    return outcomes;
  }
};

TEST_F(TrainLenetWorkers, ThreadsAndProcessesGiveTheSameBitsSlow) {
  for (const auto& method : kWorkerMethods) {
    SCOPED_TRACE(testing::PrintToString(method));
    const bool differ = method.size() > 1 && method[1] == "noloco";
    const Arguments common = joined(
        joined(workers(4, {"--iterations", "8"}), differ ? Arguments{} : Arguments{"--check-every", "3"}), method);
    const auto threads = train(joined(common, {"--save", place("threads")}));
    ASSERT_EQ(threads.size(), 8);
    EXPECT_EQ(train(joined(common, {"--transport", "socket", "--save", place("processes")})), threads);
    EXPECT_EQ(read_file(place("processes")), read_file(place("threads")));
  }
}

TEST_F(TrainLenetWorkers, EveryWireGivesTheSameBitsAndAPlainOneSaysSo) {
  const Arguments two = workers(2, {"--iterations", "4"});
  const auto threads = train(two);
  for (const std::string wire : {"tls", "mac", "plain"}) {
    const Arguments over_wire = joined(two, {"--transport", "socket", "--wire", wire});
    EXPECT_EQ(train(over_wire), threads) << wire;
    const bool says_so =
        run(over_wire).out.find("plain wire: nobody notices who reads or changes their bytes") != std::string::npos;
    EXPECT_EQ(says_so, wire == "plain");
  }
}

TEST_F(TrainLenetWorkers, AWireNeedsProcessesAndAPlainOneStaysOnThisMachine) {
  const Outcome threads = run(workers(2, {"--iterations", "4", "--wire", "tls"}));
  EXPECT_EQ(threads.code, 2);
  EXPECT_NE(threads.err.find("--wire"), std::string::npos) << threads.err;
  EXPECT_NE(threads.err.find("it belongs to --transport socket and nccl"), std::string::npos) << threads.err;
  const Outcome far = run_program(
      joined({"/usr/bin/env", "TERN_TOKEN=a token of the right length"},
             words({"--rank", "1", "--world-size", "2", "--master", "203.0.113.7:29400", "--wire", "plain"})));
  EXPECT_EQ(far.code, 2);
  EXPECT_NE(far.err.find("found an address that other machines can reach, expected one of loopback"), std::string::npos)
      << far.err;
}

TEST_F(TrainLenetWorkers, FloatsOverAnyNumberAreOneProcessWithTheWholeBatch) {
  const auto alone = train({"--iterations", "10"});
  for (const int count : {1, 2, 4}) {
    const auto together = train(workers(count, {"--iterations", "10"}));
    ASSERT_EQ(together.size(), 10);
    for (const auto& [step, loss] : together) EXPECT_NEAR(loss, alone.at(step), 1e-5 * alone.at(step)) << step;
  }
}

TEST_F(TrainLenetWorkers, BatchSizesMeanTheSameWithEveryMethodSlow) {
  const std::pair<Arguments, const char*> methods[] = {
      {{}, "batch 16 (8 a worker, 16 an update)"},
      {{"--method", "local-sgd"}, "batch 16 (8 a worker, 8 an update)"},
      {{"--method", "demo", "--optimizer", "sgd"}, "batch 16 (8 a worker, 16 an update)"},
      {{"--method", "noloco"}, "batch 16 (8 a worker, 8 an update)"},
      {{"--method", "ist"}, "batch 16 (8 a worker, 8 an update)"}};
  for (const auto& [method, text] : methods) {
    SCOPED_TRACE(text);
    const Arguments recipe = workers(2, joined({"--iterations", "3"}, method));
    const auto total = train(joined(recipe, {"--batch-size", "16"}));
    EXPECT_EQ(train(joined(recipe, {"--local-batch-size", "8"})), total);
    EXPECT_EQ(read_log(place("train.jsonl")).front()["batch_size"], 16);
    EXPECT_EQ(train(joined(recipe, {"--local-batch-size", "8", "--batch-size", "16"})), total);
    const std::string out = run(recipe).out;
    EXPECT_NE(out.substr(0, out.find('\n')).find(text), std::string::npos) << out;
  }
  const std::string out = run({"--iterations", "1", "--accumulate", "4"}).out;
  EXPECT_NE(out.find(", batch 16 (16 a worker, 64 an update), "), std::string::npos) << out;
  EXPECT_NE(run({"--iterations", "1"}).out.find(", batch 16, "), std::string::npos);
}

TEST_F(TrainLenetWorkers, CodecsAndTheirFlagsAct) {
  std::map<std::string, std::map<int64_t, double>> found;
  for (const auto& flags :
       std::vector<Arguments>{{"none"},
                              {"ternary"},
                              {"ternary", "--min-compress", "1000"},
                              {"ternary", "--keep-float", "fc1.*"},
                              {"ternary", "--weight-decay", "0.01"},
                              {"ternary", "--weight-decay", "0.01", "--weight-decay-in-gradient"}}) {
    std::string name;
    for (const auto& flag : flags) name += flag + " ";
    found[name] = train(joined(workers(2, {"--iterations", "4", "--codec"}), flags));
    EXPECT_EQ(found[name].size(), 4);
  }
  std::set<std::map<int64_t, double>> different;
  for (const auto& [name, losses] : found) different.insert(losses);
  EXPECT_EQ(different.size(), found.size());
}

TEST_F(TrainLenetWorkers, LogsTheBytesOfEveryStepAndOfTheRun) {
  constexpr int64_t kParameters = 431080, kSteps = 5;
  for (const int ranks : {2, 4}) {
    train(workers(ranks, {"--iterations", std::to_string(kSteps), "--transport", "socket"}));
    const auto events = read_log(place("train.jsonl"));
    EXPECT_EQ(events.front()["workers"], ranks);
    EXPECT_EQ(events.front()["codec"], "none");
    // On a ring, each rank sends its f32 data twice, less two of the parts.
    const int64_t a_step = 8 * kParameters * (ranks - 1) / ranks;
    for (const auto& event : events) {
      if (event["event"] != "step") continue;
      EXPECT_NEAR(event["bytes_sent_payload"].get<double>(), a_step, 64);
      EXPECT_GT(event["bytes_sent_overhead"], 0);
    }
    const auto& done = events.back();
    double encode = 0, wait = 0, decode = 0;  // of all steps: the exchange's times in the run
    for (const auto& event : events) {
      if (event["event"] != "step") continue;
      encode += event["encode_seconds"].get<double>();
      wait += event["wait_seconds"].get<double>();
      decode += event["decode_seconds"].get<double>();
    }
    EXPECT_NEAR(encode, done["encode_seconds"].get<double>(), 1e-9);
    EXPECT_NEAR(wait, done["wait_seconds"].get<double>(), 1e-9);
    EXPECT_NEAR(decode, done["decode_seconds"].get<double>(), 1e-9);
    const double payload = done["bytes_sent_payload"], overhead = done["bytes_sent_overhead"];
    EXPECT_NEAR(payload, kSteps * a_step, 64 * kSteps);
    EXPECT_NEAR(done["bytes_ratio_float_ring"].get<double>(),
                8.0 * kSteps * kParameters * (ranks - 1) / ranks / (payload + overhead), 1e-12);
    const double parts = done["compute_seconds"].get<double>() + done["encode_seconds"].get<double>() +
                         done["wait_seconds"].get<double>() + done["decode_seconds"].get<double>();
    EXPECT_NEAR(parts, done["seconds"].get<double>(), 1e-9);
    EXPECT_GT(done["wait_seconds"], 0);
  }
}

TEST_F(TrainLenetWorkers, PrintsWhatWasSent) {
  for (const char* transport : {"inproc", "socket"}) {
    const Outcome outcome = run(workers(2, {"--iterations", "3", "--transport", transport, "--codec", "ternary"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    for (const char* part : {"2 workers", "codec ternary", "bytes sent ", "float32 ring ", "time  ", "accuracy "})
      EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in: " << outcome.out;
    EXPECT_EQ(outcome.out.find("[rank "), std::string::npos) << outcome.out;
  }
}

TEST_F(TrainLenetWorkers, CodecHelpListsCodecsAndExchanges) {
  const Outcome help = run({"--codec", "help"});
  EXPECT_EQ(help.code, 0) << help.err;
  for (const char* part : {"ternary", "qsgd", "error-feedback", "Exchanges", "allgather"})
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
}

TEST_F(TrainLenetWorkers, RefusesWhatRanksCannotDo) {
  const std::pair<Arguments, std::string> table[] = {
      {{"--workers", "3"}, "--batch-size: found 16, expected a multiple of 3"},
      {{"--workers", "3", "--method", "ist"}, "--batch-size: found 16, expected a multiple of 3"},
      {{"--workers", "2", "--batch-size", "16", "--local-batch-size", "16"},
       "--batch-size 16 and --local-batch-size 16 contradict each other: 2 workers have 32 samples in a step"},
      {{"--workers", "2", "--local-batch-size", "101"},
       "--local-batch-size: found 101, expected 100 or fewer: all there is in mnist for each worker"},
      {{"--workers", "0"}, "--workers: found 0"},
      {{"--workers", "65"}, "--workers: found 65"},
      {{"--workers", "2", "--transport", "pigeon"}, "expected inproc|socket|nccl|mpi"},
      {{"--workers", "2", "--transport", "nccl"}, "--device: found cpu, expected cuda with --transport nccl"},
      {{"--workers", "2", "--transport", "nccl", "--device", "cuda", "--link", "rate=1gbit"}, "--link would change"},
      {{"--workers", "2", "--transport", "mpi"}, "MPI"},  // in a build without it, or without a launcher
      {{"--workers", "2", "--codec", "morse"}, "--codec: "},
      {{"--workers", "2", "--exchange", "mail"}, "--exchange: "},
      {{"--workers", "2", "--codec", "ternary", "--exchange", "ring"}, "--exchange: "},
      {{"--workers", "2", "--link", "rate=fast"}, "--link: "},
      {{"--workers", "2", "--keep-float", "fc9.*", "--codec", "ternary"}, "fc9.*"},
      {{"--workers", "2", "--keep-float", "fc2.*"}, "--keep-float would change nothing"},
      {{"--workers", "2", "--dead-after", "1"}, "--dead-after would change nothing"},
      {{"--workers", "2", "--transport", "socket", "--dead-after", "0"}, "--dead-after: found 0"},
      {{"--workers", "2", "--transport", "socket", "--dead-after", "1e300"}, "expected 0.1 to 86400"},
      {{"--workers", "2", "--transport", "socket", "--max-restarts", "1"}, "it needs --checkpoint DIR"},
      {{"--workers", "2", "--weight-decay-in-gradient"}, "it needs --weight-decay"},
      {{"--workers", "2", "--optimizer", "adamw", "--weight-decay", "0.1", "--weight-decay-in-gradient"},
       "adamw and muon keep the weight decay apart from the gradient"},
      {{"--workers", "2", "--calibrate-batches", "3"}, "the model has no batch normalisation"},
      {{"--workers", "2", "--local-steps", "3"}, "--local-steps would change nothing"},
      {{"--workers", "2", "--method", "local-sgd", "--outer-lr", "1"}, "it belongs to --method diloco, sparseloco and"},
      {{"--workers", "2", "--method", "sparseloco", "--outer-momentum", "0.9"}, "--method diloco and noloco"},
      {{"--workers", "2", "--method", "diloco", "--fragments", "11"}, "found 11, expected at most --local-steps, 10"},
      {{"--workers", "2", "--method", "diloco", "--fragments", "9"}, "9 fragments, expected 1 to 8"},
      {{"--workers", "2", "--method", "diloco", "--delay", "10"}, "found 10, expected less than --local-steps, 10"},
      {{"--workers", "2", "--method", "diloco", "--mix", "1"}, "--mix: found 1"},
      {{"--workers", "2", "--method", "noloco", "--fragments", "2"}, "it belongs to --method diloco"},
      {{"--workers", "2", "--method", "noloco", "--codec", "fp16"}, "--method noloco sends floats"},
      {{"--workers", "2", "--method", "sparseloco", "--codec", "ternary"},
       "expected topk-block:decay=X with X above 0"},
      {{"--workers", "2", "--method", "demo"}, "--optimizer: found momentum, expected sgd with --method demo"},
      {{"--workers", "2", "--method", "demo", "--optimizer", "sgd", "--clip-norm", "1"},
       "--clip-norm and --method demo"},
      {{"--workers", "2", "--method", "demo", "--optimizer", "sgd", "--lr-schedule", "cosine", "--group",
        "fc1.*:until=0.5"},
       "expected none with --method demo"},
      {{"--workers", "2", "--exchange", "powersgd:rank=0"}, "exchange powersgd: rank=0; expected a whole number"},
      {{"--workers", "2", "--method", "local-sgd", "--ist-scope", "fc"}, "it belongs to --method ist"},
      {{"--workers", "2", "--method", "local-sgd", "--ema-decay", "0.9"}, "--ema-decay and --method local-sgd"},
      {{"--workers", "2", "--method", "ist", "--ist-scope", "blocks"},
       "this model has no residual blocks whose shortcut changes nothing; expected fc|filters"},
      {{"--workers", "2", "--method", "ist", "--exchange", "ring"}, "expected coordinator|peer"},
      {{"--workers", "2", "--method", "local-sgd", "--overlap"}, "it belongs to --method data-parallel"},
      {{"--workers", "2", "--method", "ist", "--stale", "1"}, "it belongs to --method data-parallel"},
      {{"--workers", "2", "--stale", "1", "--overlap"}, "--stale and --overlap contradict each other"},
      {{"--workers", "2", "--stale", "2"}, "--stale: found 2, expected 0 to 1"},
      {{"--codec", "ternary"}, "--codec would change nothing: it needs --workers N"},
      {{"--workers", "2", "--transport", "socket", "--bind", "0.0.0.0"}, "TERN_TOKEN_FILE"},
      {{"--rank", "0", "--world-size", "2", "--master", "127.0.0.1:9", "--bind", "0.0.0.0"}, "TERN_TOKEN_FILE"},
      {{"--workers", "2", "--transport", "socket", "--bind", "[::1"},
       "--bind: found [::1, expected a ] at the end of the address"},
      {{"--rank", "0", "--master", "127.0.0.1:9"}, "--world-size"},
      {{"--rank", "0", "--world-size", "2", "--master", "127.0.0.1:0"}, "--master: found port 0, expected 1 to 65535"},
      {{"--rank", "2", "--world-size", "2", "--master", "127.0.0.1:9"}, "--rank: found 2"},
      {{"--rank", "0", "--world-size", "2", "--master", "127.0.0.1:9", "--workers", "4"}, "--workers: found 4"},
      {{"--rank", "0", "--world-size", "2", "--master", "nowhere"}, "--master: "},
  };
  for (const auto& [flags, sentence] : table) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err << "expected: " << sentence;
    EXPECT_EQ(outcome.out, "");
  }
}

// NCCL, a driver or GPUs are missing. One process says in one sentence which of them.
TEST_F(TrainLenetWorkers, NcclSaysWhatIsMissing) {
  const Outcome outcome = run({"--workers", "64", "--batch-size", "64", "--transport", "nccl", "--device", "cuda"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("train_lenet: NCCL: ") ||
              outcome.err.starts_with("train_lenet: device cuda:0: ") ||
              outcome.err.starts_with("train_lenet: --workers: found 64, expected "))
      << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(TrainLenetWorkers, TakesItsPlaceFromTorchrunsAndMpirunsVariables) {
  const Arguments flags = {"--iterations", "4", "--codec", "ternary", "--log", place("log")};
  const auto expected = train(workers(2, {"--iterations", "4", "--codec", "ternary"}));
  const std::string port = std::to_string(detail::Listener(Address{}).address().port);
  const std::pair<std::vector<Arguments>, std::string> table[] = {
      {{{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=localhost",
         "MASTER_PORT=" + port},
        {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=localhost",
         "MASTER_PORT=" + port}},
       "torchrun (RANK, WORLD_SIZE)"},
      {{{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
         "TERN_MASTER_PORT=" + port},
        {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
         "TERN_MASTER_PORT=" + port}},
       "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)"}};
  for (const auto& [variables, source] : table) {
    const auto outcomes = run_ranks(variables, {flags, flags});
    for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcomes[0].out.find(source), std::string::npos) << outcomes[0].out;
    EXPECT_EQ(outcomes[1].out, "");
    EXPECT_EQ(losses(place("log")), expected);
  }
}

// Rank 1 writes its part of a checkpoint before rank 0 writes its file, which makes the checkpoint whole. Here a folder
// takes the place of rank 0's file, once the run has begun.
TEST_F(TrainLenetWorkers, GoesOnAfterCheckpointsThatRankZeroCouldNotFinishSlow) {
  const auto to = [&](int steps) {
    return workers(2, {"--iterations", std::to_string(steps), "--method", "local-sgd", "--local-steps", "1", "--link",
                       "latency=100ms", "--checkpoint", place("run"), "--checkpoint-every", "100"});
  };
  ASSERT_EQ(run(to(2)).code, 0);
  for (const int steps : {5, 6, 7}) {
    std::filesystem::remove(place("log"));
    Process process(words(joined(to(steps), {"--resume", "--log", place("log")})));
    const auto end = Clock::now() + std::chrono::seconds(30);
    while (!std::filesystem::exists(place("log")) ||
           read_file(place("log")).find("\"event\":\"step\"") == std::string::npos) {
      ASSERT_LT(Clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::string taken = place("run/step-0000000") + std::to_string(steps) + ".tern";
    std::filesystem::create_directory(taken);
    EXPECT_NE(process.wait().code, 0);
    std::filesystem::remove(taken);
    EXPECT_EQ(load_checkpoint(place("run")).step, 2);
    EXPECT_EQ(load_checkpoint(place("run/rank-1")).step, steps);
  }
  const Outcome outcome = run(joined(to(8), {"--resume"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// A machine that took the place of another one has a torchrun that has restarted nothing.
TEST_F(TrainLenetWorkers, GoesOnIfAnyTorchrunHasRestartedItsRank) {
  auto rest = train(workers(2, {"--iterations", "6"}));
  std::erase_if(rest, [](const auto& step) { return step.first <= 3; });
  const auto run_two = [&](const char* restarts_of_0, const char* restarts_of_1, const char* steps) {
    const std::string port = std::to_string(detail::Listener(Address{}).address().port);
    const auto place_of = [&](const char* rank, const char* restarts) -> Arguments {
      return {std::string("RANK=") + rank,
              std::string("LOCAL_RANK=") + rank,
              "WORLD_SIZE=2",
              "LOCAL_WORLD_SIZE=2",
              "MASTER_ADDR=localhost",
              "MASTER_PORT=" + port,
              std::string("TORCHELASTIC_RESTART_COUNT=") + restarts};
    };
    const Arguments flags = {"--iterations", steps, "--checkpoint", place("run"), "--log", place("log")};
    return run_ranks({place_of("0", restarts_of_0), place_of("1", restarts_of_1)}, {flags, flags});
  };
  for (const auto& [of_0, of_1] : {std::pair("1", "0"), {"0", "1"}}) {
    std::filesystem::remove_all(place("run"));
    for (const Outcome& outcome : run_two("0", "0", "3")) ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::filesystem::remove(place("log"));
    for (const Outcome& outcome : run_two(of_0, of_1, "6")) ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(losses(place("log")), rest) << of_0 << of_1;
  }
  const auto again = run_two("0", "0", "6");
  EXPECT_EQ(again[0].code, 2);
  EXPECT_NE(again[0].err.find("holds a run already"), std::string::npos) << again[0].err;
}

TEST_F(TrainLenetWorkers, NamesTheSettingByWhichRanksDiffer) {
  const std::string port = std::to_string(detail::Listener(Address{}).address().port);
  const auto by_hand = [&](const char* rank, const Arguments& more) {
    return joined({"--rank", rank, "--world-size", "3", "--master", "127.0.0.1:" + port, "--iterations", "3"}, more);
  };
  const std::pair<Arguments, std::string> table[] = {
      {{"--lr", "0.02"}, "rank 2: lr=0.02, rank 0: lr=0.01"},
      {{"--codec", "ternary"}, "rank 2: codec=\"ternary\", rank 0: codec=\"none\""},
      {{"--seed", "9"}, "rank 2: seed=9, rank 0: seed=1"},
      {{"--check-every", "7"}, "rank 2: check-every=7, rank 0: check-every=100"},
      {{"--exchange", "ring"}, "rank 2: exchange=\"ring\", rank 0: exchange=not given"},
  };
  for (const auto& [more, sentence] : table) {
    const Arguments batch = {"--batch-size", "24"};
    const auto outcomes =
        run_ranks({{}, {}, {}}, {by_hand("0", batch), by_hand("1", batch), joined(by_hand("2", batch), more)});
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.code, 3);
      EXPECT_EQ(outcome.err, "train_lenet: " + sentence + "; expected the same on all ranks\n");
    }
  }
}

// Another user has another token.
TEST_F(TrainLenetWorkers, ARankOfAnotherUserIsTurnedAway) {
  const std::string port = std::to_string(detail::Listener(Address{}).address().port);
  const auto by_hand = [&](const char* rank) {
    return words({"--rank", rank, "--world-size", "2", "--master", "127.0.0.1:" + port});
  };
  Process first(by_hand("0"));
  std::filesystem::create_directory(place("other"));
  Process other(joined({"/usr/bin/env", "XDG_RUNTIME_DIR=" + place("other")}, by_hand("1")));
  const Outcome outcome = other.wait();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("holds another job token than rank 1"), std::string::npos) << outcome.err;
  EXPECT_TRUE(first.running()) << "it waits for a rank that holds its token";
}

// A limit of 1 KiB per file acts like a full disk.
TEST_F(TrainLenetWorkers, ARankThatCannotWriteTellsTheOthersWhy) {
  const std::string port = std::to_string(detail::Listener(Address{}).address().port);
  const auto by_hand = [&](const char* rank) {
    return words({"--rank", rank, "--world-size", "2", "--master", "127.0.0.1:" + port, "--quiet"});
  };
  const Arguments limited = {"/bin/bash", "-c", "ulimit -f 1; exec \"$@\"", "-"};
  Process writer(joined(limited, joined(by_hand("0"), {"--log", place("log")})));
  const Outcome other = Process(by_hand("1")).wait(), own = writer.wait();
  const std::string cause = "--log: " + place("log") + ": cannot be written: File too large";
  EXPECT_EQ(own.code, 2);
  EXPECT_EQ(own.err, "train_lenet: " + cause + "\n");
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(other.err.starts_with("note: rank 1: ")) << other.err;
  EXPECT_NE(other.err.find("\ntrain_lenet: rank 0 ("), std::string::npos) << other.err;
  EXPECT_NE(other.err.find(") ended: " + cause), std::string::npos) << other.err;
}

TEST_F(TrainLenetWorkers, ARankThatWaitsForOthersEndsAtCtrlC) {
  const Address master{"127.0.0.1", detail::Listener(Address{}).address().port};
  Process rank(words({"--rank", "0", "--world-size", "2", "--master", to_string(master)}));
  std::string why;
  ASSERT_TRUE(detail::connect(master, Clock::now() + std::chrono::minutes(1), why).open()) << why;
  rank.send(SIGINT);
  EXPECT_EQ(rank.wait().code, 128 + SIGINT);
}

TEST_F(TrainLenetWorkers, GoesOnFromACheckpointOfAllRanks) {
  const Arguments recipe = {"--epochs", "2", "--codec", "error-feedback:ternary", "--ema-decay", "0.9"};
  const auto unbroken = train(workers(4, joined(recipe, {"--save", place("unbroken")})));
  ASSERT_EQ(unbroken.size(), 24);
  const Arguments run_in = {"--checkpoint", place("run"), "--checkpoint-every", "10"};
  ASSERT_EQ(train(workers(4, joined(joined(recipe, {"--transport", "socket"}), run_in))), unbroken);
  const auto sent = [&] { return read_log(place("train.jsonl")).back()["bytes_sent_payload"].get<int64_t>(); };
  const int64_t sent_unbroken = sent();
  std::filesystem::remove(place("train.jsonl"));
  std::filesystem::remove(place("run/step-00000024.tern"));  // acts as if rank 0 had not written it yet
  const auto rest = train(workers(4, joined(joined(recipe, run_in), {"--resume", "--save", place("resumed")})));
  ASSERT_EQ(rest.size(), 4);
  for (const auto& [step, loss] : rest) EXPECT_EQ(loss, unbroken.at(step)) << step;
  EXPECT_EQ(read_file(place("resumed")), read_file(place("unbroken")));
  EXPECT_EQ(sent(), sent_unbroken);

  for (const char* transport : {"inproc", "socket"}) {
    const Outcome outcome = run(workers(2, joined(joined(recipe, run_in), {"--resume", "--transport", transport})));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("--workers was 4 and is 2 now"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run({"--checkpoint", place("run"), "--resume", "--eval-only"}).code, 0);
}

TEST_F(TrainLenetWorkers, MethodsGoOnFromACheckpointWithinARoundSlow) {
  const Arguments methods[] = {
      {"local-sgd", "--local-steps", "4"},
      {"ist", "--local-steps", "4"},
      {"sparseloco", "--local-steps", "4"},
      {"noloco", "--local-steps", "4"},
      {"diloco", "--local-steps", "4", "--fragments", "2", "--delay", "2", "--mix", "0.5"},
      {"diloco", "--local-steps", "4", "--delay", "2", "--codec", "ternary", "--exchange", "server"},
      {"demo", "--optimizer", "sgd", "--lr", "0.001"},
      {"data-parallel", "--exchange", "powersgd:rank=2,start=3"}};
  for (const Arguments& method : methods) {
    SCOPED_TRACE(method[0]);
    std::filesystem::remove_all(place("run"));
    const Arguments recipe =
        workers(4, joined(joined({"--method"}, method), {"--epochs", "3", "--local-batch-size", "8"}));
    const Arguments run_in = {"--checkpoint", place("run"), "--checkpoint-every", "7"};
    const auto sent = [&] { return read_log(place("train.jsonl")).back()["bytes_sent_payload"].get<int64_t>(); };
    const auto unbroken = train(joined(recipe, {"--save", place("unbroken")}));
    ASSERT_EQ(unbroken.size(), 18) << "an epoch is one pass over the 200 images by all workers together";
    const int64_t sent_unbroken = sent();
    std::filesystem::remove(place("train.jsonl"));
    EXPECT_EQ(train(joined(recipe, run_in)), unbroken) << "writing checkpoints changed the losses";
    EXPECT_EQ(sent(), sent_unbroken);
    std::filesystem::remove(place("run/step-00000018.tern"));
    std::filesystem::remove(place("train.jsonl"));
    const auto rest = train(joined(joined(recipe, run_in), {"--resume", "--save", place("resumed")}));
    ASSERT_EQ(rest.size(), 4);
    for (const auto& [step, loss] : rest) EXPECT_EQ(loss, unbroken.at(step)) << step;
    EXPECT_EQ(read_file(place("resumed")), read_file(place("unbroken")));
    EXPECT_EQ(sent(), sent_unbroken);
  }
}

// These files were moved, mixed or made by hand. Each has a correct checksum.
TEST_F(TrainLenetWorkers, RefusesPartsThatDoNotBelongTogether) {
  const Arguments recipe = workers(3, {"--iterations", "4", "--batch-size", "12", "--codec", "error-feedback:ternary"});
  const auto in = [&](const std::string& folder) { return joined(recipe, {"--checkpoint", place(folder)}); };
  ASSERT_EQ(run(in("whole")).code, 0);
  ASSERT_EQ(run(in("other")).code, 0);
  ASSERT_EQ(run(joined(in("seeded"), {"--seed", "9"})).code, 0);
  const std::string step = "/step-00000004.tern";
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(place(from + step), place(to + step), std::filesystem::copy_options::overwrite_existing);
  };
  const auto edit = [&](const std::string& folder, const std::function<void(Checkpoint&)>& change) {
    Checkpoint part = read_checkpoint(place(folder + step));
    change(part);
    save_checkpoint(place(folder), part);
  };
  const std::string run_of_whole = read_checkpoint(place("whole" + step)).run;
  const std::string run_of_other = read_checkpoint(place("other" + step)).run;
  EXPECT_NE(run_of_whole, run_of_other);
  const std::string crc32c = read_checkpoint(place("whole/rank-2" + step)).checksum;
  struct Case {
    std::function<void()> change;
    std::string file, sentence;
  };
  const Case cases[] = {
      {[&] { copy("whole/rank-2", "run/rank-1"); }, "run/rank-1", "'rank': found 2, expected 1"},
      {[&] { copy("whole/rank-1", "run"); }, "run", "'rank': found 1, expected 0"},
      {[&] { copy("other/rank-1", "run/rank-1"); }, "run/rank-1",
       "'run': found " + run_of_other + ", expected " + run_of_whole + ", as in " + place("run" + step)},
      {[&] { copy("seeded/rank-1", "run/rank-1"); }, "run/rank-1", "--seed was 9 and is 1 now"},
      {[&] { edit("run/rank-2", [](Checkpoint& part) { part.notes["seconds"] = "0.125"; }); }, "run/rank-2",
       "expected " + crc32c + ", as in " + place("run" + step)},
      {[&] { edit("run", [](Checkpoint& part) { part.epoch = 5; }); }, "run", "'epoch': found 5, expected 0"},
      {[&] { edit("run", [](Checkpoint& part) { part.position = 36; }); }, "run", "'position': found 36, expected 48"},
      {[&] { edit("run", [](Checkpoint& part) { part.seed = 3; }); }, "run", "'seed': found 3, expected 1"},
      {[&] { edit("run", [](Checkpoint& part) { part.notes.erase("seconds"); }); }, "run",
       "'note.seconds': found '', expected a number, 0 or more"},
      {[&] { edit("run", [](Checkpoint& part) { part.notes["bytes sent, payload"] = "-1"; }); }, "run",
       "'note.bytes sent, payload': found '-1', expected a number, 0 or more"},
  };
  for (const auto& [change, file, sentence] : cases) {
    std::filesystem::remove_all(place("run"));
    std::filesystem::copy(place("whole"), place("run"), std::filesystem::copy_options::recursive);
    change();
    const Outcome outcome = run(joined(in("run"), {"--resume"}));
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_NE(outcome.err.find("--resume: " + place(file + step) + ": "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err << "expected: " << sentence;
  }
  // Each of two ranks finds the other's part. Either may report it first.
  copy("whole", "run");
  copy("whole/rank-2", "run/rank-1");
  copy("whole/rank-1", "run/rank-2");
  const Outcome swapped = run(joined(in("run"), {"--resume"}));
  EXPECT_EQ(swapped.code, 2);
  EXPECT_TRUE(swapped.err.find("'rank': found 2, expected 1") != std::string::npos ||
              swapped.err.find("'rank': found 1, expected 2") != std::string::npos)
      << swapped.err;
}

TEST_F(TrainLenetWorkers, DilocoWithARateOfOneAndNoMomentumIsLocalSgdSlow) {
  const auto losses = [&](const Arguments& method) {
    std::filesystem::remove(place("train.jsonl"));
    return train(workers(4, joined(method, {"--local-steps", "4", "--iterations", "10", "--save", place("model")})));
  };
  for (const char* codec : {"none", "ternary"}) {
    const auto expected = losses({"--method", "local-sgd", "--codec", codec});
    const std::string model = read_file(place("model"));
    EXPECT_EQ(losses({"--method", "diloco", "--codec", codec, "--outer-lr", "1", "--outer-momentum", "0"}), expected);
    EXPECT_EQ(read_file(place("model")), model);
    EXPECT_NE(losses({"--method", "diloco", "--codec", codec}), expected);
    EXPECT_NE(read_file(place("model")), model);
  }
}

TEST_F(TrainLenetWorkers, LocalMethodsSendLess) {
  const auto payload = [&](const Arguments& more) {
    train(joined(workers(2, {"--iterations", "6"}), more));
    return read_log(place("train.jsonl")).back()["bytes_sent_payload"].get<double>();
  };
  const double every_step = payload({});
  EXPECT_NEAR(payload({"--method", "local-sgd", "--local-steps", "3"}), every_step / 3, every_step / 100);
  EXPECT_NEAR(payload({"--method", "diloco", "--local-steps", "3"}), every_step / 3, every_step / 100);
  EXPECT_NEAR(payload({"--method", "noloco", "--local-steps", "3"}), every_step / 3, every_step / 100);
  EXPECT_LT(payload({"--method", "sparseloco", "--local-steps", "3"}), every_step / 300);
  EXPECT_LT(payload({"--method", "ist", "--local-steps", "3"}), every_step / 2);
}

// By default subnets go straight between the ranks, without their momentum. The log has the bytes of rank 0.
TEST_F(TrainLenetWorkers, RankZeroSendsTheLeastOfSubnetsByDefault) {
  const auto payload = [&](const Arguments& more) {
    train(joined(workers(4, {"--iterations", "6", "--method", "ist", "--local-steps", "3"}), more));
    return read_log(place("train.jsonl")).back()["bytes_sent_payload"].get<double>();
  };
  const double as_they_are = payload({});
  EXPECT_EQ(payload({"--exchange", "peer", "--ist-momentum", "drop"}), as_they_are);
  EXPECT_GT(payload({"--ist-momentum", "travel"}), 1.5 * as_they_are);
  EXPECT_GT(payload({"--exchange", "coordinator"}), 1.5 * as_they_are);
  // A fifth: nearly half of the bytes go to the ranks, and a half of these is left out.
  EXPECT_NEAR(payload({"--ist-download", "bf16"}) / as_they_are, 0.8, 0.02);
}

TEST_F(TrainLenetWorkers, ARankWithoutItsFileNamesIt) {
  const Arguments recipe = workers(2, {"--iterations", "4", "--checkpoint", place("run")});
  ASSERT_EQ(run(recipe).code, 0);
  std::filesystem::remove_all(place("run/rank-1"));
  const Outcome outcome = run(joined(recipe, {"--resume"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("rank-1/step-00000004.tern"), std::string::npos) << outcome.err;
}

TEST_F(TrainLenetWorkers, ALinkSlowsTheStepsAndChangesNothing) {
  const auto seconds = [&] { return read_log(place("train.jsonl")).back()["seconds"].get<double>(); };
  const auto fast = train(workers(2, {"--iterations", "3"}));
  // A step sends 1,724,320 bytes. At 50 Mbit/s this takes 0.276 s.
  EXPECT_EQ(train(workers(2, {"--iterations", "3", "--link", "rate=50mbit"})), fast);
  EXPECT_GE(seconds(), 3 * 0.27);
}

}  // namespace
}  // namespace tern
