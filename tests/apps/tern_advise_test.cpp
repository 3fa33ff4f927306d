#include <gtest/gtest.h>

#include "tern/apps/models/lenet.h"
#include "tern/apps/tern-advise/page.h"
#include "tests/support/process.h"

namespace tern {
namespace {

Outcome advise(std::vector<std::string> words) {
  words.insert(words.begin(), TERN_ADVISE);
  return run_program(words);
}

TEST(TernAdvise, RefusesWhatCannotBe) {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"--model", "lnet"}, "--model: found 'lnet', expected lenet|mlp|mlp4096|"},
      {{"--model", "lnet"}, ", did you mean 'lenet'?"},
      {{"--workers", "0"}, "--workers: found 0, expected 2 to 4096"},
      {{"--workers", "many"}, "--workers: found 'many', expected a whole number"},
      {{"--link", "fast"}, "--link: link 'rate=fast': 'fast' is not a number and one of kbit, mbit, gbit"},
      {{"--link", "latency=1ms"}, "--link: link 'latency=1ms' has no rate, expected rate=1gbit"},
      {{"--workers", "3", "--batch-size", "64"}, "--batch-size: found 64, expected a multiple of 3, so that"},
      {{"--local-steps", "0"}, "--local-steps: found 0, expected 1 to"},
      {{"--workers", "2", "--ranks-per-machine", "4"}, "--ranks-per-machine: found 4, expected 2 or fewer"},
      {{"--threads", "-1"}, "--threads: found -1, expected 1 to 1024"},
      {{"--seconds", "0"}, "--seconds: found 0, expected a number above 0"},
      {{"--dance"}, "--dance"},
  };
  for (const auto& [words, sentence] : rows) {
    const Outcome outcome = advise(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("tern-advise: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
}

// On a link this slow, what is sent decides; what each way sends is known to the byte.
TEST(TernAdvise, RanksByWhatIsSentWhereTheLinkIsSlow) {
  const Outcome outcome =
      advise({"--model", "mlp", "--workers", "4", "--link", "rate=100kbit", "--threads", "1", "--seconds", "0.001"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text :
       {"mlp, 4 workers, 64 images a step (16 each); 0.1 Mbit/s, 0 ms", "Compression pays: data-parallel ternary by",
        "fastest: local-sgd ternary by allgather\n  ./dev run train_mlp --batch-size 16 --workers 4 --method local-sgd "
        "--local-steps 10 --codec ternary --exchange allgather\n",
        "\n    512 "})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\nin\n" << outcome.out;
}

// The ledger's means of LeNet's runs, as the README has them.
TEST(TernAdvise, PlansTheBytesOfRealRuns) {
  models::LeNet lenet;
  lenet.initialize(1);
  const auto sent = [&](const char* codec, const char* exchange, int workers) {
    return plan_round(lenet, {"data-parallel", codec, exchange}, workers).sent(workers);
  };
  EXPECT_EQ(sent("none", "ring", 1), 0);
  EXPECT_EQ(sent("none", "ring", 2), 5024320);
  EXPECT_EQ(sent("none", "ring", 4), 7536480);
  EXPECT_EQ(sent("qsgd:bits=4,bucket=512", "allgather", 2), 637880);
  EXPECT_EQ(sent("qsgd:bits=4,bucket=512", "allgather", 4), 1913640);
  EXPECT_EQ(sent("ternary", "allgather", 2), 314058);
  EXPECT_EQ(sent("ternary", "allgather", 4), 942174);
}

/// Of two ways that compute for 10 ms; floats and codes take this long in all, seconds.
std::string page(double floats, double codes) {
  const AdviceOptions options = {.workers = 8, .link = {.bytes_per_second = 1.25e8}, .batch_size = 64, .threads = 2};
  std::vector<Forecast> forecasts = {{{"data-parallel", "ternary", "allgather"}, 0.010, {.wait = codes - 0.010}, 2e6},
                                     {{"data-parallel", "none", "ring"}, 0.010, {.wait = floats - 0.010}, 8e6}};
  if (floats < codes) std::swap(forecasts[0], forecasts[1]);
  return advice_page(find_network("lenet"), options, {}, forecasts, {});
}

TEST(AdvicePage, SaysWhetherCompressionPays) {
  const std::string pays = page(0.060, 0.020), does_not = page(0.0112, 0.0118);
  EXPECT_NE(pays.find("Compression pays: data-parallel ternary by allgather makes a step 3.0 times as fast as float"),
            std::string::npos)
      << pays;
  EXPECT_NE(
      pays.find("fastest: data-parallel ternary by allgather\n  ./dev run train_lenet --batch-size 64 --workers 8 "
                "--codec ternary --exchange allgather\n"),
      std::string::npos)
      << pays;
  EXPECT_NE(does_not.find("Compression does not pay here: a step with float gradients takes 11.20 ms, of which the "
                          "network 1.20;"),
            std::string::npos)
      << does_not;
  EXPECT_NE(does_not.find("./dev run train_lenet --batch-size 64 --workers 8 --exchange ring\n"), std::string::npos);
}

}  // namespace
}  // namespace tern
