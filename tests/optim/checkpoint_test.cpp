#include "tern/optim/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <string>
#include <thread>

#include "tern/core/random.h"
#include "tern/optim/average.h"
#include "tern/optim/sgd.h"
#include "tests/optim/two_parameters.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

StateDict one_tensor(double value, int64_t count = 4) {
  StateDict state;
  state.add("w", Tensor::full({count}, value));
  return state;
}

Checkpoint at_step(int64_t step) {
  return {.run = "a", .step = step, .sections = {{"model", one_tensor(double(step))}}};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string load_error(const fs::path& folder) {
  return message_of<InputError>([&] { load_checkpoint(folder); });
}

TEST(Checkpoint, KeepsAllItIsGiven) {
  const TemporaryFolder folder;
  const Checkpoint saved{.run = "0123abcd",
                         .rank = 0,
                         .ranks = 3,
                         .step = 1234,
                         .epoch = 2,
                         .position = 56,
                         .seed = UINT64_MAX,
                         .contract = {{"--lr", "0.1"}, {"step", "not the step"}},
                         .notes = {{"model", "lenet"}, {"step", "not the step"}},
                         .parts = {"11111111", "22222222"},
                         .sections = {{"model", one_tensor(1)}, {"optimizer", {}}, {"residuals", one_tensor(2)}}};
  const auto [file, checksum] = save_checkpoint(folder.path(), saved);
  EXPECT_EQ(file, folder.path() / "step-00001234.tern");
  const Checkpoint loaded = load_checkpoint(folder.path());
  EXPECT_EQ(loaded.run, "0123abcd");
  EXPECT_EQ(loaded.rank, 0);
  EXPECT_EQ(loaded.ranks, 3);
  EXPECT_EQ(loaded.parts, saved.parts);
  EXPECT_EQ(loaded.contract, saved.contract);
  EXPECT_EQ(loaded.checksum, checksum);
  EXPECT_EQ(loaded.step, 1234);
  EXPECT_EQ(loaded.epoch, 2);
  EXPECT_EQ(loaded.position, 56);
  EXPECT_EQ(loaded.seed, UINT64_MAX);
  EXPECT_EQ(loaded.notes, saved.notes);
  EXPECT_EQ(loaded.file, file);
  ASSERT_EQ(loaded.sections.size(), 3u);
  EXPECT_EQ(loaded.section("model").at("w").to_vector<float>(), std::vector<float>(4, 1));
  EXPECT_EQ(loaded.section("optimizer").size(), 0u);
  EXPECT_EQ(loaded.section("residuals").at("w").to_vector<float>(), std::vector<float>(4, 2));
  EXPECT_EQ(message_of<InputError>([&] { loaded.section("average"); }),
            file.string() + ": no section 'average', expected one in this run's checkpoint");
}

TEST(Checkpoint, ResumesARunBitForBit) {
  const TemporaryFolder folder;
  const auto train = [](TwoParameters& model, Sgd& optimizer, ParameterAverage& average, int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      model.set_gradients(t);
      optimizer.step();
      average.update();
    }
  };
  const auto state = [](TwoParameters& model) {
    StateDict dict;
    dict.add("a", model.a.value());
    dict.add("b", model.b.value());
    return dict;
  };
  const Sgd::Options options{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  TwoParameters whole(DType::f32), resumed(DType::f32);
  Sgd optimizer(whole.parameters(), options), other(resumed.parameters(), options);
  ParameterAverage average(whole.parameters(), 0.9), other_average(resumed.parameters(), 0.9);
  train(whole, optimizer, average, 0, 3);
  save_checkpoint(
      folder.path(),
      {.run = "a",
       .step = 3,
       .sections = {{"model", state(whole)}, {"optimizer", optimizer.state()}, {"average", average.state()}}});
  train(whole, optimizer, average, 3, 7);

  const Checkpoint checkpoint = load_checkpoint(folder.path());
  copy_state(checkpoint.section("model"), state(resumed), "the model");
  checkpoint.restore("optimizer", other);
  checkpoint.restore("average", other_average);
  train(resumed, other, other_average, checkpoint.step, 7);
  EXPECT_EQ(resumed.values(), whole.values());
  other_average.swap();
  average.swap();
  EXPECT_EQ(resumed.values(), whole.values());
}

TEST(Checkpoint, KeepsTheNewestTwoUpToItsStep) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), at_step(100));  // from a run that went further
  write_file(folder.path() / "step-00000009.tern.tmp-123", "left by a killed writer");
  write_file(folder.path() / "notes.txt", "a person's own");
  write_file(folder.path() / "step-x.tern", "a person's own");
  for (int64_t step : {8, 9, 10, 11}) save_checkpoint(folder.path(), at_step(step));
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"notes.txt", "step-00000010.tern", "step-00000011.tern",
                                                               "step-00000100.tern", "step-x.tern"}));
  EXPECT_EQ(latest_checkpoint(folder.path()), folder.path() / "step-00000100.tern");
}

TEST(Checkpoint, OrdersByNumber) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), at_step(99'999'999));
  save_checkpoint(folder.path(), at_step(100'000'000));
  EXPECT_EQ(load_checkpoint(folder.path()).step, 100'000'000);
}

TEST(Checkpoint, KeepsThePartsOfTheLastWholeCheckpoint) {
  const TemporaryFolder folder;
  for (const int64_t step : {8, 9, 10, 14, 15, 16}) save_checkpoint(folder.path(), at_step(step), 10);
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder.path())) kept.insert(entry.path().filename());
  EXPECT_EQ(kept, (std::set<std::string>{"step-00000009.tern", "step-00000010.tern", "step-00000014.tern",
                                         "step-00000015.tern", "step-00000016.tern"}));
}

// The parts of the other ranks have the same steps in their folders, so one of them is no use alone.
TEST(Checkpoint, NamesAnEarlierPartIfOneIsBroken) {
  const TemporaryFolder folder;
  std::vector<fs::path> parts;
  for (const int64_t step : {1, 2, 3}) parts.push_back(save_checkpoint(folder.path(), at_step(step), 0).file);
  EXPECT_EQ(load_checkpoint_part(parts[1]).step, 2);
  const auto error_of = [](const fs::path& part) {
    return message_of<InputError>([&] { load_checkpoint_part(part); });
  };
  write_file(parts[1], "");
  EXPECT_EQ(error_of(parts[1]),
            parts[1].string() +
                ": at byte 0: found 0 bytes, expected the 8 of the header's length; the previous good "
                "one is " +
                parts[0].string() + ": remove later steps from the folders of all ranks to resume from it");
  write_file(parts[0], "");
  EXPECT_EQ(error_of(parts[0]),
            parts[0].string() + ": at byte 0: found 0 bytes, expected the 8 of the header's length");
}

TEST(Checkpoint, NamesTheBrokenOneAndThePreviousGoodOne) {
  const TemporaryFolder folder;
  const fs::path good = save_checkpoint(folder.path(), at_step(1)).file,
                 bad = save_checkpoint(folder.path(), at_step(2)).file;
  const std::string bytes = read_file(bad);
  const std::string advice =
      "; the previous good checkpoint is " + good.string() + ": remove the broken one to resume from it";

  std::string flipped = bytes;
  flipped[flipped.size() - 5] ^= 1;
  write_file(bad, flipped);
  const std::string wrong_checksum = load_error(folder.path());
  EXPECT_TRUE(wrong_checksum.starts_with(bad.string() + ": the file's contents do not match its checksum: found "))
      << wrong_checksum;
  EXPECT_TRUE(wrong_checksum.ends_with(advice)) << wrong_checksum;

  for (size_t length = 0; length < bytes.size(); length += 7) {
    write_file(bad, bytes.substr(0, length));
    const std::string truncated = load_error(folder.path());
    EXPECT_TRUE(truncated.starts_with(bad.string() + ": at byte ")) << truncated;
    EXPECT_TRUE(truncated.ends_with(advice)) << truncated;
  }

  write_file(good, "");
  EXPECT_TRUE(load_error(folder.path()).ends_with("; no other checkpoint in " + folder.path().string() + " is whole"));
  fs::remove(bad);
  fs::remove(good);
  EXPECT_EQ(load_error(folder.path()), folder.path().string() + ": no checkpoint (step-*.tern) found there");
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
}

TEST(Checkpoint, RefusesAModelFileAndAnotherModel) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "step-00000001.tern";
  write_safetensors(model, one_tensor(1), {{"format", "pt"}});
  EXPECT_TRUE(load_error(folder.path())
                  .starts_with(model.string() + ": __metadata__ 'format': found 'pt', expected 'tern-checkpoint-2'"));

  StateDict wider;
  wider.add("momentum.a", Tensor::zeros({1, 5}));
  const fs::path file =
      save_checkpoint(folder.path(), {.run = "a", .step = 2, .sections = {{"optimizer", wider}}}).file;
  TwoParameters two(DType::f32);
  Sgd optimizer(two.parameters(), {.momentum = 0.9});
  const Checkpoint checkpoint = load_checkpoint(folder.path());
  EXPECT_EQ(message_of<InputError>([&] { checkpoint.restore("optimizer", optimizer); }),
            file.string() + ": optimizer: load: 'momentum.a' is f32 [1, 5], the optimizer expects f32 [1, 4]");
}

// These files have a correct checksum, but values that no run writes.
TEST(Checkpoint, NamesTheFieldThatIsOdd) {
  const TemporaryFolder folder;
  struct Odd {
    std::string field, value;  // if it is empty, the file lacks the field
    std::string sentence;
  };
  const std::string minimum = std::to_string(INT64_MIN);
  const Odd table[] = {
      {"step", "-5", "'step': found '-5', expected a number, 0 or more"},
      {"step", minimum, "'step': found '" + minimum + "', expected a number, 0 or more"},
      {"step", "", "'step': found '', expected a number, 0 or more"},
      {"step", "7", "'step': found '7', expected '2' as in the file's name"},
      {"epoch", "1.5", "'epoch': found '1.5', expected a number, 0 or more"},
      {"position", "-0", "'position': found '-0', expected a number, 0 or more"},
      {"position", "1\n\x1b[31m", "'position': found '1\\n\\x1b[31m', expected a number, 0 or more"},
      {"position", " 1", "'position': found ' 1', expected a number, 0 or more"},
      {"seed", "18446744073709551616", "'seed': found '18446744073709551616', expected a number, 0 or more"},
      {"rank", "2", "'rank': found '2', expected less than 2 ranks"},
      {"rank", "-1", "'rank': found '-1', expected a number, 0 or more"},
      {"ranks", "3", "'parts': found '11111111', expected 2 checksums"},
      {"parts", "", "'parts': found '', expected 1 checksums"},
      {"run", "", "'run': found '', expected the id of a run"},
      {"format", "tern-checkpoint-3", "'format': found 'tern-checkpoint-3', expected 'tern-checkpoint-2'"}};
  const Checkpoint whole{
      .run = "a", .ranks = 2, .step = 2, .parts = {"11111111"}, .sections = {{"model", one_tensor(1)}}};
  for (const auto& [field, value, sentence] : table) {
    const fs::path file = save_checkpoint(folder.path(), whole).file;
    SafetensorsFile odd = read_safetensors(file);
    odd.metadata.erase(field);
    if (!value.empty()) odd.metadata[field] = value;
    write_safetensors(file, odd.tensors, odd.metadata);
    EXPECT_EQ(message_of<InputError>([&] { read_checkpoint(file); }), file.string() + ": __metadata__ " + sentence);
  }
}

TEST(Checkpoint, SurvivesAKilledWriterAtAnyMoment) {
  const TemporaryFolder folder;
  const RandomStream random({.seed = 7});
  int64_t step = 0;
  int with_checkpoint = 0;
  for (uint64_t round = 0; round < 25; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int64_t next = step + 1;; ++next) {
        save_checkpoint(folder.path(),
                        {.run = "a", .step = next, .sections = {{"model", one_tensor(double(next), 100'000)}}});
      }
    }
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(round, 30'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    if (!latest_checkpoint(folder.path())) continue;
    const Checkpoint checkpoint = load_checkpoint(folder.path());
    EXPECT_GE(checkpoint.step, step);
    EXPECT_EQ(checkpoint.section("model").at("w").to_vector<float>(),
              std::vector<float>(100'000, static_cast<float>(checkpoint.step)));
    step = checkpoint.step;
    ++with_checkpoint;
  }
  EXPECT_GT(with_checkpoint, 0);
}

}  // namespace
}  // namespace tern
