#include <nlohmann/json.hpp>
#include <regex>

#include "tern/core/safetensors.h"
#include "tern/networks/mlp.h"
#include "tern/trainer/run/memory.h"
#include "tern/trainer/run/shards.h"
#include "tests/apps/train_lenet.h"
#include "tests/support/log.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

using trainer::join_shards;
using trainer::read_shard_index;

/// Runs of train_mlp, or another program, in which no rank holds the whole model.
class Sharded : public testing::Test {
 protected:
  using Flags = std::vector<std::string>;

  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }

  Outcome run(const Flags& more) const {
    Flags words = {program_};
    for (const Flags& flag : std::vector<Flags>{width_,
                                                {"--batch-size", "16"},
                                                {"--workers", "4"},
                                                {"--method", "ist"},
                                                {"--local-steps", "3"},
                                                {"--threads", "1"},
                                                calibration_})
      if (!flag.empty() && !std::ranges::count(more, flag.front())) words.insert(words.end(), flag.begin(), flag.end());
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  /// The losses of the steps of a run that succeeds, and last the loss of the evaluation at its end.
  std::vector<double> losses(Flags more) const {
    more.insert(more.end(), {"--quiet", "--log", place("log")});
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<double> found;
    const auto events = read_log(place("log"));
    for (const auto& event : events)
      if (event["event"] == "step") found.push_back(event["loss"]);
    found.push_back(events.back()["loss"]);
    return found;
  }
  static Flags with(Flags flags, const Flags& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  /// Trains with `flags` whole, and sharded over each transport.
  void expect_like_the_unsharded_run(const Flags& flags, const std::vector<const char*>& transports) const;

  std::string program_ = built_program("train_mlp");
  Flags width_ = {"--hidden", "37"};
  Flags calibration_ = {"--calibrate-batches", "2"};  // empty for models without batch normalisation
  const Flags sharded_ = {"--ist-store", "sharded"};
  TemporaryFolder folder_;
};

void expect_equal_parameters(const StateDict& found, const StateDict& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const auto values = found.at(name).to_vector<float>(), wanted = tensor.to_vector<float>();
    // Statistics come from a product of another width, whose sums may have another order.
    if (name.find("running") == std::string::npos) {
      EXPECT_EQ(values, wanted) << name;
    } else {
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i])));
    }
  }
}

void Sharded::expect_like_the_unsharded_run(const Flags& flags, const std::vector<const char*>& transports) const {
  const auto expected = losses(with(flags, {"--save", place("whole")}));
  const StateDict whole = read_safetensors(place("whole")).tensors;
  for (const char* transport : transports) {
    const auto found =
        losses(with(with(flags, sharded_), {"--transport", transport, "--save", place("model.safetensors")}));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i + 1 < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << transport << ", step " << i + 1;
    EXPECT_NEAR(found.back(), expected.back(), 1e-4);
    expect_equal_parameters(join_shards(place("model.safetensors.index.json")), whole);
  }
}

// A whole model of 256 MiB: training, evaluation, checkpoint and --save take less than that in every process, beyond
// what a small model takes. A rank has a slice of 64 MiB, as much for its gradient, and pieces in transfer: 164 MiB. A
// second copy of the slice would be too much.
TEST_F(Sharded, NeedsMuchLessMemoryThanTheWholeModel) {
  if (!std::string_view(TERN_SANITIZE).empty()) GTEST_SKIP() << "sanitizers take memory of their own";
  const auto peak = [&](const char* hidden, const Flags& store) {
    const Flags flags = {"--data",
                         "tones",
                         "--hidden",
                         hidden,
                         "--iterations",
                         "2",
                         "--eval-batch-size",
                         "16",
                         "--optimizer",
                         "sgd",
                         "--transport",
                         "socket",
                         "--quiet",
                         "--log",
                         place("log"),
                         "--checkpoint",
                         place(std::string("run") + hidden),
                         "--save",
                         place(std::string("model") + hidden + ".safetensors")};
    const Outcome outcome = run(with(flags, store));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_log(place("log")).back()["largest_peak_memory"].get<double>() / 1024 / 1024;
  };
  constexpr double kWhole = 256;  // MiB
  const double base = peak("8", sharded_), slices = peak("16384", sharded_);
  EXPECT_LT(slices - base, 0.75 * kWhole) << "beyond " << base << " MiB";
}

// The steps are those of a run whose ranks can have the whole model, bit for bit. In an evaluation, the sums over
// neurons have another order.
TEST_F(Sharded, TrainsLikeTheUnshardedRunSlow) {
  for (const Flags& form : {Flags{"--norm", "all"}, Flags{"--norm", "hidden", "--ist-momentum", "travel"}})
    expect_like_the_unsharded_run(with(form, {"--iterations", "8"}), {"inproc", "socket"});
  calibration_ = {};
  expect_like_the_unsharded_run(
      {"--norm", "none", "--optimizer", "adam", "--ist-momentum", "travel", "--iterations", "8"}, {"inproc", "socket"});
}

// All ranks have LeNet's convolutions whole, and average them after each round.
TEST_F(Sharded, TrainsLenetLikeTheUnshardedRunSlow) {
  program_ = built_program("train_lenet");
  width_ = calibration_ = {};
  expect_like_the_unsharded_run({"--iterations", "4"}, {"socket"});
}

// The input is sparse, and so are the gradients and updates of its rows. The loss goes over the labels in parts.
TEST_F(Sharded, TrainsAnExtremeClassifierLikeTheUnshardedRun) {
  program_ = built_program("train_extreme");
  for (const Flags& form : {Flags{}, Flags{"--optimizer", "adam", "--lr", "0.01", "--ist-momentum", "travel"}}) {
    const Flags flags =
        with(form, {"--inputs", "500", "--labels", "300", "--samples", "2000", "--transport", "socket"});
    const auto expected = losses(with(flags, {"--iterations", "8", "--save", place("whole")}));
    const StateDict whole = read_safetensors(place("whole")).tensors;
    const Flags kept = with(with(flags, sharded_), {"--checkpoint", place("run"), "--save", place("m.safetensors")});
    losses(with(kept, {"--iterations", "5"}));
    const auto rest = losses(with(kept, {"--iterations", "8", "--resume"}));
    ASSERT_EQ(rest.size(), expected.size());
    for (size_t i = 0; i + 1 < rest.size(); ++i) EXPECT_EQ(rest[i], expected[i]) << "step " << i + 1;
    EXPECT_NEAR(rest.back(), expected.back(), 1e-4);
    expect_equal_parameters(join_shards(place("m.safetensors.index.json")), whole);
    std::filesystem::remove_all(place("run"));
  }
}

TEST_F(Sharded, GoesOnFromItsCheckpointsSlow) {
  const Flags flags =
      with(sharded_, {"--norm", "hidden", "--ist-momentum", "travel", "--save", place("a.safetensors")});
  const auto whole = losses(with(flags, {"--iterations", "9"}));
  const StateDict expected = join_shards(place("a.safetensors.index.json"));
  for (const char* stop : {"4", "6"}) {  // within a round and between two
    const Flags kept = with(flags, {"--checkpoint", place(std::string("run") + stop), "--transport", "socket"});
    losses(with(kept, {"--iterations", stop}));
    const auto rest = losses(with(kept, {"--iterations", "9", "--resume"}));
    EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), whole.rbegin())) << stop;
    const StateDict found = join_shards(place("a.safetensors.index.json"));
    for (const auto& [name, tensor] : expected)
      EXPECT_EQ(found.at(name).to_vector<double>(), tensor.to_vector<double>()) << name;
    // The index in the checkpoint leads to the same model.
    const StateDict kept_there =
        join_shards(place(std::string("run") + stop + "/model.safetensors.index.json"), "model/");
    for (const auto& [name, tensor] : expected)
      EXPECT_EQ(kept_there.at(name).to_vector<double>(), tensor.to_vector<double>()) << name;
  }
  const Outcome fewer = run({"--ist-store", "sharded", "--norm", "hidden", "--ist-momentum", "travel", "--checkpoint",
                             place("run4"), "--resume", "--workers", "2", "--iterations", "9"});
  EXPECT_EQ(fewer.code, 2);
}

TEST_F(Sharded, WritesAFileForEachRankAndAnIndex) {
  ASSERT_EQ(
      run(with(sharded_, {"--norm", "hidden", "--iterations", "0", "--save", place("m.safetensors"), "--quiet"})).code,
      0);
  EXPECT_FALSE(std::filesystem::exists(place("m.safetensors")));
  const auto first = read_safetensors(place("m-00001-of-00004.safetensors")).tensors,
             last = read_safetensors(place("m-00004-of-00004.safetensors")).tensors;
  EXPECT_EQ(first.at("layers.0.weight.slice.0").shape(), (Shape{9, 784}));
  EXPECT_EQ(last.at("layers.0.weight.slice.3").shape(), (Shape{10, 784}));
  EXPECT_EQ(last.at("layers.2.weight.slice.3").shape(), (Shape{10, 10}));
  EXPECT_EQ(first.at("layers.2.bias").shape(), (Shape{10}));
  EXPECT_EQ(last.find("layers.2.bias"), nullptr);
  const auto index = read_shard_index(place("m.safetensors.index.json"));
  EXPECT_EQ(index.slices, 4);
  EXPECT_EQ(index.total_size, 4 * (784 * 37 + 4 * 37 + 37 * 10 + 10) + 8);
  EXPECT_EQ(index.cut.at("layers.0.weight"), 0);
  EXPECT_EQ(index.cut.at("layers.2.weight"), 1);
  EXPECT_EQ(index.files.at("layers.2.bias"), "m-00001-of-00004.safetensors");

  // They are the first values of the whole model.
  networks::Mlp model({.widths = {784, 37, 10}, .norm = networks::MlpNorm::hidden});
  model.initialize(1);
  const StateDict found = join_shards(place("m.safetensors.index.json"));
  for (const auto& [name, parameter] : model.parameters())
    EXPECT_EQ(found.at(name).to_vector<double>(), parameter->value().to_vector<double>()) << name;
}

TEST_F(Sharded, StartsFromSlicesSlow) {
  const Flags flags = {"--iterations", "4"};
  ASSERT_EQ(run(with(sharded_, {"--seed", "3", "--iterations", "2", "--save", place("m.safetensors"), "--quiet"})).code,
            0);
  const std::string index = place("m.safetensors.index.json");
  const auto from_slices = losses(with(with(flags, sharded_), {"--init", index})),
             of_whole = losses(with(flags, {"--init", index}));
  EXPECT_EQ(from_slices.front(), of_whole.front());
  EXPECT_NE(from_slices.front(), losses(flags).front());
  // The slices of a checkpoint have the same names behind "model/".
  ASSERT_EQ(run(with(sharded_, {"--seed", "3", "--iterations", "2", "--checkpoint", place("kept"), "--quiet"})).code,
            0);
  EXPECT_EQ(losses(with(with(flags, sharded_), {"--init", place("kept/model.safetensors.index.json")})), from_slices);
  const Outcome evaluated =
      run_program({built_program("train_mlp"), "--hidden", "37", "--eval-only", "--init", index, "--threads", "1"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;

  write_safetensors(place("whole"), join_shards(index));
  const Outcome whole = run(with(sharded_, {"--init", place("whole")}));
  EXPECT_EQ(whole.code, 2);
  EXPECT_NE(whole.err.find("found one file of a whole model"), std::string::npos) << whole.err;
  const Outcome smaller = run(with(sharded_, {"--norm", "none", "--init", index}));
  EXPECT_EQ(smaller.code, 2);
  EXPECT_NE(smaller.err.find(", which the model does not have"), std::string::npos) << smaller.err;
}

// The statistics of its hidden neurons need no sum over all labels, however many batches they come from.
TEST_F(Sharded, CalibratesAnExtremeClassifierWithoutItsLabels) {
  program_ = built_program("train_extreme");
  const auto overhead = [&](const char* batches) {
    losses(with(sharded_, {"--inputs", "500", "--labels", "300", "--samples", "2000", "--iterations", "6",
                           "--calibrate-batches", batches}));
    return read_log(place("log")).back()["bytes_sent_overhead"].get<int64_t>();
  };
  const int64_t of_one = overhead("1");
  EXPECT_GT(of_one, 0);
  EXPECT_EQ(overhead("9"), of_one);
}

// 37 neurons are 9 or 10 for each of four ranks, 12 or 13 for three, and 7 or 8 for five.
TEST_F(Sharded, StartsFromTheSlicesOfAnotherNumberOfRanksSlow) {
  ASSERT_EQ(run(with(sharded_,
                     {"--iterations", "3", "--save", place("m.safetensors"), "--checkpoint", place("kept"), "--quiet"}))
                .code,
            0);
  for (const std::string ranks : {"2", "3", "5"})
    for (const std::string& index : {place("m.safetensors.index.json"), place("kept/model.safetensors.index.json")}) {
      const Outcome again = run(with(sharded_, {"--init", index, "--workers", ranks, "--batch-size", "30",
                                                "--iterations", "0", "--save", place("again.safetensors"), "--quiet"}));
      ASSERT_EQ(again.code, 0) << again.err;
      const StateDict again_whole = join_shards(place("again.safetensors.index.json"));
      for (const auto& [name, tensor] : join_shards(place("m.safetensors.index.json")))
        if (name.find("running") == std::string::npos) {  // an evaluation takes statistics again
          EXPECT_EQ(again_whole.at(name).to_vector<double>(), tensor.to_vector<double>()) << name;
        }
    }
  const Outcome other = run(with(sharded_, {"--init", place("m.safetensors.index.json"), "--workers", "2", "--hidden",
                                            "38", "--iterations", "0"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(
      other.err.find(
          "m-00002-of-00004.safetensors: tensor 'layers.0.weight.slice.1' is f32 [9, 784], expected f32 [10, 784]"),
      std::string::npos)
      << other.err;
}

TEST_F(Sharded, RefusesWhatDoesNotFit) {
  for (const auto& [flags, message] : std::vector<std::pair<Flags, std::string>>{
           {{"--layers", "3"}, "--ist-store sharded: the model has 2 hidden layers"},
           {{"--workers", "1"}, "--workers: found 1, expected 2 or more with --ist-store sharded"},
           {{"--exchange", "coordinator"}, "--exchange: found coordinator, expected peer"},
           {{"--codec", "fp16"}, "--codec: found fp16, expected none"},
           {{"--freeze", "layers.0*"}, "--freeze and --ist-store sharded contradict each other"},
           {{"--method", "local-sgd", "--calibrate-batches", "1"},
            "--ist-store would change nothing: it belongs to --method ist"}}) {
    const Outcome outcome = run(with(sharded_, flags));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
}

constexpr bool kReservesAddressSpace = std::string_view(TERN_SANITIZE).find("address") != std::string_view::npos;

Outcome run_within(int64_t kilobytes, const std::string& command) {
  return run_program({"/bin/sh", "-c", "ulimit -v " + std::to_string(kilobytes) + "; exec " + command});
}

TEST_F(Sharded, TellsWhatAModelNeedsThatDoesNotFit) {
  if (kReservesAddressSpace) GTEST_SKIP() << "AddressSanitizer reserves more address space than the limit of this test";
  const auto refused = [](const std::string& flags, const std::string& program = built_program("train_mlp")) {
    const Outcome outcome = run_within(4194304, program + " " + flags);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  const std::string hidden = "--threads 1 --hidden 1000000 --data tones ";
  const std::string alone = refused(hidden + "--optimizer sgd");
  EXPECT_NE(alone.find("the model does not fit: its 4133000000 parameters and their gradients need at least 33.07 GB"),
            std::string::npos)
      << alone;
  EXPECT_NE(alone.find("left of this process's address space"), std::string::npos) << alone;
  EXPECT_NE(alone.find("--method ist --ist-store sharded --transport socket would fit from --workers "),
            std::string::npos)
      << alone;
  const std::string deep = refused(hidden + "--layers 3");
  EXPECT_EQ(deep.find("would fit"), std::string::npos) << deep;
  const std::string amazon = refused("--inputs 135909 --labels 670091 --hidden 2560 --samples 2000 --threads 1",
                                     built_program("train_extreme"));
  // What is left of 4.29 GB depends on the size of the libraries.
  EXPECT_TRUE(std::regex_search(
      amazon, std::regex("its 2063365120 parameters need at least 8\\.25 GB, 4\\.1[0-9] GB are left of this process's "
                         "address space \\(ulimit -v\\); --method ist --ist-store sharded --transport socket would fit "
                         "from --workers 3 on: each worker then keeps 2\\.75 GB")))
      << amazon;
}

TEST_F(Sharded, FitsWithAsManyWorkersAsItAdvises) {
  if (kReservesAddressSpace) GTEST_SKIP() << "AddressSanitizer reserves more address space than the limit of this test";
  const auto train = [](const std::string& more) {
    return run_within(900'000, built_program("train_extreme") +
                                   " --inputs 10000 --labels 250000 --hidden 512 --samples 640 --threads 1 "
                                   "--iterations 2 --local-batch-size 8 --clip-norm 1 " +
                                   more);
  };
  const Outcome alone = train("");
  EXPECT_EQ(alone.code, 2) << alone.err;
  EXPECT_NE(alone.err.find("its 133121024 parameters and their gradients need at least 1.04 GB"), std::string::npos)
      << alone.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(alone.err, found, std::regex("(--method .* from --workers [3-6]) on"))) << alone.err;
  const Outcome together = train(std::regex_replace(found[1].str(), std::regex("would fit from "), ""));
  EXPECT_EQ(together.code, 0) << together.err;
}

TEST(Memory, CountsWhatAModelNeedsAtLeast) {
  networks::Mlp model({.widths = {100'000, 4'000, 10}});  // it has no values yet
  const int64_t cut = 100'000 * 4'000 + 2 * 4'000 + 4'000 * 10, buffers = 2 * 4'000 + 1 + 2 * 10 + 1;
  TrainSettings settings = {.optimizer = UpdateRule::adam};
  EXPECT_EQ(trainer::least_bytes(settings, model, nullptr, 1), 4 * (4 * cut + buffers));
  settings.iterations = 0;
  EXPECT_EQ(trainer::least_bytes(settings, model, nullptr, 1), 4 * (cut + buffers)) << "no gradients and no state";
  settings.iterations = 1;
  settings.optimizer = UpdateRule::sgd;
  const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model.whole_shapes());
  EXPECT_EQ(trainer::least_bytes(settings, model, &cuts, 4), 4 * (2 * cut / 4 + 2 * 1'000 + 1 + 2 * 10 + 1));
  trainer::check_memory(settings, model, nullptr, 1, {.bytes = 4 * (2 * cut + buffers), .source = "free"});
  const auto refusal = [&](const SubnetCuts* of, const trainer::MemoryLimit& limit) {
    return message_of<InputError>([&] { trainer::check_memory(settings, model, of, 4, limit); });
  };
  EXPECT_EQ(refusal(nullptr, {.bytes = 1'400'000'000, .source = "left", .of_machine = false}),
            "the model does not fit: its 400048000 parameters and their gradients need at least 3.20 GB, 1.40 GB are "
            "left; --method ist --ist-store sharded --transport socket would fit from --workers 4 on: each worker then "
            "keeps 0.80 GB, and needs room for its batches");
  // Of little memory, the program itself needs a large part, and more of a limit of address space.
  const std::string little = refusal(nullptr, {.bytes = 700'000'000, .source = "left", .of_machine = false});
  EXPECT_NE(little.find("from --workers 20 on: each worker then keeps 0.16 GB"), std::string::npos) << little;
  const std::string free = refusal(nullptr, {.bytes = 500'000'000, .source = "free"});
  EXPECT_NE(free.find("from --workers 14 on, each with as much memory of its own: each worker then keeps 0.23 GB"),
            std::string::npos)
      << free;
  // Two ranks share what is free. A slice of each fits if the other's does too.
  trainer::check_memory(settings, model, &cuts, 4, {.bytes = 2'000'000'000, .ranks = 2, .source = "free"});
  EXPECT_EQ(refusal(&cuts, {.bytes = 1'400'000'000, .ranks = 2, .source = "free"}),
            "the model does not fit: its 400048000 parameters and their gradients, for 2 workers on this machine, need "
            "1.60 GB for their slices, 1.40 GB are free; --method ist --ist-store sharded --transport socket would fit "
            "from --workers 4 on, each with as much memory of its own: each worker then keeps 0.80 GB, and needs room "
            "for its batches");
}

TEST(Memory, ReadsTheLimitsOfControlGroups) {
  TemporaryFolder mount;
  const auto group = [&](const std::string& path, std::vector<std::pair<std::string, std::string>> files) {
    std::filesystem::create_directories(mount.path() / path);
    for (const auto& [name, text] : files) write_file((mount.path() / path / name).string(), text);
  };
  const auto left = [&](const std::string& membership) { return trainer::memory_of_groups(mount.path(), membership); };
  EXPECT_EQ(left("0::/job/rank\n"), std::nullopt);
  group("job/rank", {{"memory.max", "max\n"}, {"memory.current", "100\n"}});
  EXPECT_EQ(left("0::/job/rank\n"), std::nullopt);
  // The group above has a limit. The kernel can take back cached files.
  group("job", {{"memory.max", "1000\n"},
                {"memory.current", "700\n"},
                {"memory.stat", "anon 300\ninactive_file 250\nactive_file 150\n"}});
  EXPECT_EQ(left("0::/job/rank\n"), 1000 - 700 + 250 + 150);
  EXPECT_EQ(left("0::/other\n"), std::nullopt);
  EXPECT_EQ(left("0::/../job\n"), std::nullopt) << "this process does not see that group";
  group("job/rank", {{"memory.max", "400\n"}});
  EXPECT_EQ(left("0::/job/rank\n"), 400 - 100) << "the smallest of both limits";
}

TEST(Memory, ReadsTheLimitsOfTheFirstVersionOfControlGroups) {
  TemporaryFolder mount;
  const auto group = [&](const std::string& path, const char* limit, const char* usage, const char* statistics) {
    const auto folder = mount.path() / "memory" / path;
    std::filesystem::create_directories(folder);
    write_file((folder / "memory.limit_in_bytes").string(), limit);
    write_file((folder / "memory.usage_in_bytes").string(), usage);
    write_file((folder / "memory.stat").string(), statistics);
  };
  const auto left = [&](const std::string& membership) { return trainer::memory_of_groups(mount.path(), membership); };
  group("", "9223372036854771712\n", "90\n", "total_inactive_file 99\n");
  EXPECT_EQ(left("4:memory:/\n"), std::nullopt) << "there is no limit";
  group("", "400\n", "500\n", "inactive_file 77\ntotal_inactive_file 30\n");
  // A container sees its own group as the root. The path of its membership is absent there.
  EXPECT_EQ(left("5:cpuacct,cpu:/\n4:memory:/docker/4f2a\n0::/\n"), 0);
  group("", "400\n", "90\n", "total_inactive_file 30\n");
  EXPECT_EQ(left("4:memory:/docker/4f2a\n"), 400 - 90 + 30);
  EXPECT_EQ(left("5:cpuacct,cpu:/\n"), std::nullopt);
  group("docker/4f2a", "50\n", "40\n", "");
  EXPECT_EQ(left("4:memory:/docker/4f2a\n"), 50 - 40);
}

TEST(ShardIndex, SaysWhatIsWrongInAFile) {
  TemporaryFolder folder;
  const std::string file = (folder.path() / "m.index.json").string();
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"[", "found no JSON object"},
           {R"({"metadata": {}})", "weight_map: found null, expected the files of tensors"},
           {R"({"metadata": {}, "weight_map": {"a": 3}})", "weight_map 'a': found 3, expected the name of a file"},
           {R"({"metadata": {"cut": {"a": 2}, "slices": 1}, "weight_map": {"a": "f"}})",
            "metadata 'cut' 'a': found 2, expected 0 or 1"},
           {R"({"metadata": {"cut": {"a": 0}, "slices": 0}, "weight_map": {"a": "f"}})",
            "metadata 'slices': found 0, expected 1 to 64"},
           {R"({"metadata": {"cut": {"a": 0}, "slices": 2}, "weight_map": {"a.slice.0": "f"}})",
            "weight_map: 'a.slice.1' not found, expected 2 slices"}}) {
    write_file(file, text);
    const std::string found = message_of<InputError>([&] { read_shard_index(file); });
    EXPECT_NE(found.find(file + ": "), std::string::npos) << found;
    EXPECT_NE(found.find(message), std::string::npos) << found;
  }
}

}  // namespace
}  // namespace tern
