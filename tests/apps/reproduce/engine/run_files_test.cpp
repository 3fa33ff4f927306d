#include "tern/apps/reproduce/engine/run_files.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/apps/reproduce/engine/result_page.h"
#include "tern/core/error.h"
#include "tern/trainer/rank/machine.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace tern::reproduce {
namespace {

/// The log of two epochs with three steps each. The run stopped after step 5 and was resumed from step 3. So it did
/// steps 4 and 5 twice.
constexpr const char* kLog = R"({"event":"start","first_step":0}
{"event":"step","step":1,"loss":2.5,"seconds":4.0,"bytes_sent_payload":100,"bytes_sent_overhead":1,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"step","step":2,"loss":2.0,"seconds":5.0,"bytes_sent_payload":100,"bytes_sent_overhead":2,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"step","step":3,"loss":1.5,"seconds":6.0,"bytes_sent_payload":100,"bytes_sent_overhead":3,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"eval","step":3,"epoch":1,"accuracy":0.5,"loss":1.25}
{"event":"step","step":4,"loss":9.0,"seconds":70.0,"bytes_sent_payload":100,"bytes_sent_overhead":4,"encode_seconds":0.25,"wait_seconds":7.5,"decode_seconds":0.125}
{"event":"step","step":5,"loss":9.0,"seconds":80.0,"bytes_sent_payload":100,"bytes_sent_overhead":5,"encode_seconds":0.25,"wait_seconds":7.5,"decode_seconds":0.125}
{"event":"start","first_step":3}
{"event":"eval","step":3,"epoch":1,"accuracy":0.5,"loss":1.25}
{"event":"step","step":4,"loss":1.0,"seconds":8.0,"bytes_sent_payload":100,"bytes_sent_overhead":7,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"step","step":5,"loss":0.75,"seconds":9.0,"bytes_sent_payload":100,"bytes_sent_overhead":8,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"step","step":6,"loss":0.5,"seconds":10.5,"bytes_sent_payload":100,"bytes_sent_overhead":9,"encode_seconds":0.25,"wait_seconds":0.5,"decode_seconds":0.125}
{"event":"eval","step":6,"epoch":2,"accuracy":0.75,"loss":0.875}
)";
constexpr const char* kDone = R"({"event":"done","accuracy":0.75,"loss":0.875,"seconds":10.5,"steps":6,)"
                              R"("bytes_sent_payload":600,"bytes_sent_overhead":30,"compute_seconds":6.0,)"
                              R"("encode_seconds":1.0,"wait_seconds":2.0,"decode_seconds":1.0})"
                              "\n";

TEST(RunLog, TellsTheCourseOfARunThatWasResumed) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "log.jsonl";
  write_file(log, kLog);
  EXPECT_FALSE(read_result(log));
  EXPECT_EQ(read_step(log), 6);

  write_file(log, std::string(kLog) + kDone);
  const auto result = read_result(log);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->losses, (std::vector<double>{2.5, 2.0, 1.5, 1.0, 0.75, 0.5}));
  ASSERT_EQ(result->curve.size(), 2);
  EXPECT_EQ(result->curve[0].step, 3);
  EXPECT_EQ(result->curve[0].seconds, 6.0);
  EXPECT_EQ(result->curve[0].bytes_sent, 306);
  EXPECT_EQ(result->curve[1].step, 6);
  EXPECT_EQ(result->curve[1].score, 0.75);
  EXPECT_EQ(result->curve[1].loss, 0.875);
  EXPECT_EQ(result->curve[1].seconds, 10.5);
  EXPECT_EQ(result->curve[1].bytes_sent, 630);
  EXPECT_EQ(result->step_seconds, 1.5) << "of 1, 1, 1, 1.5, 2 and 4 seconds";
  ASSERT_TRUE(result->time);
  EXPECT_EQ(result->time->encode, 6 * 0.25) << "of all steps, not only of the last process";
  EXPECT_EQ(result->time->wait, 6 * 0.5);
  EXPECT_EQ(result->time->decode, 6 * 0.125);
  EXPECT_EQ(result->time->total(), 10.5);

  EXPECT_EQ(result->curve[0].score, 0.5);
  EXPECT_EQ(crossing(*result, 0.5)->seconds, 6.0);
  EXPECT_DOUBLE_EQ(crossing(*result, 0.6)->steps, 3 + 0.4 * 3) << "0.6 is 0.4 of the way from 0.5 to 0.75";
  EXPECT_DOUBLE_EQ(crossing(*result, 0.6)->seconds, 6 + 0.4 * 4.5);
  EXPECT_EQ(crossing(*result, 0.75)->steps, 6);
  EXPECT_FALSE(crossing(*result, 0.8));
}

TEST(RunLog, NamesTheFileThatIsDamaged) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "log.jsonl";
  const std::string sentence = log.string() + ": is damaged, expected the log of a run; remove its folder to repeat";
  for (const char* text : {"x\n{\"event\":\"done\"}\n", "x\n{\"event\":7,\"step\":\"seven\"}\n"}) {
    write_file(log, text);
    EXPECT_TRUE(message_of<InputError>([&] { read_result(log); }).starts_with(sentence)) << text;
  }
  std::string cut = std::string(kLog) + kDone;
  cut.insert(cut.find("{\"event\":\"eval\"") + 5, "\n");
  write_file(log, cut);
  EXPECT_TRUE(message_of<InputError>([&] { read_result(log); }).starts_with(sentence)) << cut;
  write_file(log, "x\n{\"event\":7,\"step\":\"seven\"}\n");
  EXPECT_TRUE(message_of<InputError>([&] { read_step(log); }).starts_with(sentence));
}

TEST(ReadResult, HasTheProcessorIfAllPartsRanOnOne) {
  const TemporaryFolder folder;
  const auto processor = [&](const std::string& first, const std::string& second) {
    std::string text = std::string(kLog) + kDone;
    for (const auto& [start, name] : {std::pair{"\"first_step\":0", first}, {"\"first_step\":3", second}})
      text.insert(text.find(start), "\"processor\":\"" + name + "\",");
    write_file(folder.path() / "log.jsonl", text);
    return read_result(folder.path() / "log.jsonl")->processor;
  };
  EXPECT_EQ(processor("a", "a"), "a");
  EXPECT_EQ(processor("a", "b"), "");
}

TEST(RunsCsv, QuotesCellsWithCommas) {
  const reproduce::Run run = {
      .name = "a", .program = "train_mlp", .flags = {}, .places = {}, .steps = 7, .columns = {{"row", "b, \"c\""}}};
  EXPECT_EQ(runs_csv({run}, {}),
            "run,row,steps,accuracy,loss,seconds,bytes_sent_payload,bytes_sent_overhead\na,\"b, \"\"c\"\"\",7,,,,,\n");
}

TEST(KeptResult, IsTheResultWithoutTheLossesOfItsSteps) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "log.jsonl", kept = folder.path() / "run.json";
  const reproduce::Run run = {.name = "run", .program = "train_mlp", .flags = {"--lr", "0.1"}};
  EXPECT_FALSE(kept_result(kept, run));
  write_file(log, std::string(kLog) + kDone);
  RunResult result = read_result(log).value();
  result.curve[0].loss = std::nan("");
  keep_result(kept, run, result);
  const auto found = kept_result(kept, run);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->losses.empty());
  EXPECT_EQ(found->score, 0.75);
  EXPECT_EQ(found->loss, 0.875);
  EXPECT_EQ(found->score_key, "accuracy");
  EXPECT_EQ(found->seconds, 10.5);
  EXPECT_EQ(found->step_seconds, 1.5);
  EXPECT_EQ(found->bytes_sent_payload, 600);
  EXPECT_EQ(found->bytes_sent_overhead, 30);
  ASSERT_TRUE(found->time);
  EXPECT_EQ(found->time->wait, 3.0);
  ASSERT_EQ(found->curve.size(), 2U);
  EXPECT_TRUE(std::isnan(found->curve[0].loss));
  EXPECT_EQ(found->curve[1].step, 6);
  EXPECT_EQ(found->curve[1].seconds, 10.5);
  EXPECT_EQ(found->curve[1].score, 0.75);
  EXPECT_EQ(found->curve[1].bytes_sent, 630);

  // Its time counts only on the processor that measured it.
  reproduce::Run timed = run;
  timed.measures_time = true;
  EXPECT_FALSE(counts_here(timed, *kept_result(kept, timed))) << "the log does not say which processor it was";
  result.processor = trainer::processor_identity();
  keep_result(kept, run, result);
  EXPECT_TRUE(counts_here(timed, *kept_result(kept, timed)));
  result.processor = "another";
  keep_result(kept, run, result);
  EXPECT_TRUE(counts_here(run, *kept_result(kept, run)));
  EXPECT_FALSE(counts_here(timed, *kept_result(kept, timed)));

  reproduce::Run other = run;
  other.flags.back() = "0.2";
  EXPECT_EQ(message_of<InputError>([&] { kept_result(kept, other); }),
            kept.string() + ": keeps the result of 'train_mlp --lr 0.1', expected 'train_mlp --lr 0.2'");
  std::string text = read_file(kept);
  text[text.find("0.75")] = '1';
  write_file(kept, text);
  EXPECT_EQ(message_of<InputError>([&] { kept_result(kept, run); }),
            kept.string() + ": is damaged, expected the kept result of a run; remove it to repeat it");
}

TEST(ReadNumbers, HasTheProcessorOfTheStudy) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "numbers.json", kept = folder.path() / "run.json";
  const reproduce::Run run = {.name = "run", .flags = {}, .measures_time = true};
  for (const std::string& processor : {std::string("another"), trainer::processor_identity()}) {
    write_numbers(file, {.seconds = 2, .numbers = {{"compute", {0.1}}}, .processor = processor});
    const auto found = read_numbers(file);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->seconds, 2);
    EXPECT_EQ(found->numbers.at("compute"), std::vector{0.1});
    EXPECT_EQ(found->processor, processor);
    keep_result(kept, run, *found);
    EXPECT_EQ(counts_here(run, *kept_result(kept, run)), processor != "another");
  }
}

}  // namespace
}  // namespace tern::reproduce
