#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <regex>

#include "tern/apps/advise/convergence.h"
#include "tern/apps/advise/page.h"
#include "tern/networks/airbench.h"
#include "tern/networks/lenet.h"
#include "tests/support/file_bytes.h"
#include "tests/support/process.h"

namespace tern::advise {
namespace {

Outcome advise(std::vector<std::string> words) {
  words.insert(words.begin(), built_program("advise"));
  return run_program(words);
}

TEST(Advise, PrintsItsVersions) {
  const Outcome outcome = advise({"--version"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("advise: tern ")) << outcome.out;
}

TEST(Advise, RefusesWhatCannotBe) {
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"--model", "lnet"}, "--model: found 'lnet', expected lenet|mlp|mlp4096|"},
      {{"--model", "lnet"}, ", did you mean 'lenet'?"},
      {{"--workers", "0"}, "--workers: found 0, expected 2 to 4096"},
      {{"--workers", "many"}, "--workers: found 'many', expected a whole number"},
      {{"--link", "fast"}, "--link: link 'fast': 'fast' is not a number and one of kbit, mbit, gbit"},
      {{"--link", "latency=1ms"}, "--link: link 'latency=1ms' has no rate, expected rate=1gbit"},
      {{"--workers", "3", "--batch-size", "64"}, "--batch-size: found 64, expected a multiple of 3, so that"},
      {{"--local-steps", "0"}, "--local-steps: found 0, expected 1 to"},
      {{"--workers", "2", "--ranks-per-machine", "4"}, "--ranks-per-machine: found 4, expected 2 or fewer"},
      {{"--threads", "-1"}, "--threads: found -1, expected 1 to 1024"},
      {{"--threads", "0"}, "--threads: found 0, expected 1 to 1024"},
      {{"--batch-size", "0"}, "--batch-size: found 0, expected 1 to 1000000"},
      {{"--seconds", "0"}, "--seconds: found 0, expected a number above 0"},
      {{"--dance"}, "unknown argument '--dance'"},
      {{"--modle", "lenet"}, "unknown argument '--modle', did you mean '--model'?"},
  };
  for (const auto& [words, sentence] : rows) {
    const Outcome outcome = advise(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("advise: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  }
}

// On such a slow link, the bytes sent decide the order. The bytes that each way sends are known exactly.
TEST(Advise, RanksByWhatIsSentWhereTheLinkIsSlow) {
  const Outcome outcome =
      advise({"--model", "mlp", "--workers", "4", "--link", "rate=100kbit", "--threads", "1", "--seconds", "0.001"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text :
       {"mlp, 4 workers, 64 images a step (16 each)\nstated: each has a cable of 0.1 Mbit/s, no latency\nmeasured, 3 "
        "times: ",
        "Compression pays: data-parallel powersgd",
        "fastest: sparseloco topk-block:decay=0.95 by allgather\n  ./dev run train_mlp --batch-size 64 --workers 4 "
        "--method sparseloco --local-steps 10 --exchange allgather\n",
        "fastest that averages gradients in every step: data-parallel powersgd", "--workers 4 --exchange powersgd"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\nin\n" << outcome.out;
  // What the README recommends. Nobody has measured how many steps this network needs.
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("\n  local-sgd +hadamard:bits=2 .*  - "))) << outcome.out;
  for (const char* workers : {"2", "512"})
    EXPECT_TRUE(std::regex_search(
        outcome.out,
        std::regex("\n +" + std::string(workers) +
                   " +[0-9]+ +[0-9]+  +[1-9][0-9]*\\.[0-9]+  (powersgd|ternary by [a-z-]+)( --overlap)?, floats by "
                   "[a-z-]+( --overlap)?\n")))
        << workers << " in\n"
        << outcome.out;
}

// The mean bytes of LeNet's runs, from the ledger. docs/performance.md shows them.
TEST(Advise, PlansTheBytesOfRealRuns) {
  networks::LeNet lenet;
  lenet.initialize(1);
  const auto sent = [&](const char* codec, const char* exchange, int workers) {
    return plan_round(lenet, {TrainingMethod::data_parallel, codec, exchange}, workers).sent(workers);
  };
  EXPECT_EQ(sent("none", "ring", 1), 0);
  EXPECT_EQ(sent("none", "ring", 2), 5024320);
  EXPECT_EQ(sent("none", "ring", 4), 7536480);
  EXPECT_EQ(sent("qsgd:bits=4,bucket=512", "allgather", 2), 637880);
  EXPECT_EQ(sent("qsgd:bits=4,bucket=512", "allgather", 4), 1913640);
  EXPECT_EQ(sent("ternary", "allgather", 2), 314058);
  EXPECT_EQ(sent("ternary", "allgather", 4), 942174);
  EXPECT_EQ(sent("hadamard:bits=2", "allgather", 4), 946380);
  EXPECT_EQ(sent("none", "powersgd", 4), 53400);
  // A round every ten steps sends a tenth of these bytes in a step.
  EXPECT_EQ(plan_round(lenet, {TrainingMethod::diloco, "none", "ring"}, 4).sent(4), 7536480);
  EXPECT_EQ(plan_round(lenet, {TrainingMethod::sparseloco, traits_of(TrainingMethod::sparseloco).codec, "allgather"}, 4)
                .sent(4),
            103227);
  const auto sent_by = [&](TrainingMethod method, int workers) {
    return plan_round(lenet, {.method = method}, workers).sent(workers);
  };
  EXPECT_EQ(sent_by(TrainingMethod::demo, 2), 91310);
  EXPECT_EQ(sent_by(TrainingMethod::demo, 4), 273930);
  EXPECT_EQ(sent_by(TrainingMethod::noloco, 4), 5024320);
  EXPECT_EQ(sent_by(TrainingMethod::noloco, 5), 4019456) << "one of the five stays alone";
}

// airbench's whitening filters are frozen: they stand first in the list of parameters, and do not travel.
TEST(Advise, PlansNothingForFrozenParameters) {
  const auto model = networks::airbench().model({.images = {3, 32, 32, 10}});
  model->initialize(1);
  int64_t trained = 0;
  for (const auto& [name, parameter] : model->trained_parameters()) trained += parameter->value().numel();
  const PlannedRound round = plan_round(*model, {TrainingMethod::data_parallel, kFloats, "ring"}, 2);
  EXPECT_EQ(round.sent(2), 4 * trained);
  EXPECT_LT(trained, model->parameter_count());
}

/// The row of a table of docs/distributed.md: steps to the target, infinite if there are none, and accuracy.
std::pair<double, double> grid_row(std::string_view page, const std::string& label) {
  const size_t begin = page.find("| " + label + " | `--");
  std::vector<std::string> cells;
  std::istringstream line(std::string(page.substr(begin, page.find('\n', begin) - begin)));
  for (std::string cell; std::getline(line, cell, '|');) cells.push_back(cell);
  return {cells.at(5) == " – " ? HUGE_VAL : std::stod(cells.at(5)), std::stod(cells.at(3))};
}

// Its numbers are those of the page that shows the grids.
TEST(Advise, CountsTheStepsOfTheGridsPage) {
  const std::string text = read_file(std::string(TERN_SOURCE_DIR) + "/docs/distributed.md");
  const std::pair<const char*, Way> rows[] = {
      {"float ring", {}},
      {"bf16 ring", {.codec = "bf16"}},
      {"ternary", {.codec = "ternary"}},
      {"QSGD", {.codec = "qsgd:bits=4"}},
      {"1BitSGD", {.codec = "onebit"}},
      {"Hadamard", {.codec = "hadamard:bits=2"}},
      {"PowerSGD", {.exchange = "powersgd"}},
      {"top 1 %", {.codec = "error-feedback:topk:ratio=0.01"}},
      {"DeMo", {.method = TrainingMethod::demo}},
      {"local SGD", {.method = TrainingMethod::local_sgd}},
      {"local SGD, Hadamard", {.method = TrainingMethod::local_sgd, .codec = "hadamard:bits=2"}},
      {"DiLoCo", {.method = TrainingMethod::diloco}},
      {"NoLoCo", {.method = TrainingMethod::noloco}},
      {"SparseLoCo", {.method = TrainingMethod::sparseloco, .codec = traits_of(TrainingMethod::sparseloco).codec}},
      {"IST", {.method = TrainingMethod::ist}}};
  const auto compare = [&](const std::string& network, int64_t local_steps, std::string_view page) {
    const auto [float_steps, float_accuracy] = grid_row(page, "float ring");
    for (const auto& [label, way] : rows) {
      SCOPED_TRACE(network + ", " + label);
      const auto found = measured_convergence(network, way, local_steps);
      ASSERT_EQ(found.has_value(), network == "lenet" || way.method != TrainingMethod::ist);
      if (!found) continue;
      const auto [steps, accuracy] = grid_row(page, label);
      EXPECT_DOUBLE_EQ(found->steps, steps / float_steps);
      EXPECT_NEAR(found->lost, float_accuracy - accuracy, 1e-9);
    }
  };
  compare("lenet", 10, text);
  compare("airbench", 20, std::string_view(text).substr(text.find("`reproduce grid --data cifar10")));
  EXPECT_TRUE(measured_convergence("lenet", {.codec = "ternary"}, 50)) << "the number of local steps does not matter";
  for (const Way& unmeasured : {Way{.codec = "fp16"}, Way{.method = TrainingMethod::local_sgd, .codec = "ternary"},
                                Way{.method = TrainingMethod::ist, .scope = SubnetScope::filters}})
    EXPECT_FALSE(measured_convergence("lenet", unmeasured, 10));
  EXPECT_FALSE(measured_convergence("lenet", {.method = TrainingMethod::local_sgd}, 20)) << "the grid takes 10 steps";
  EXPECT_FALSE(measured_convergence("resnet", {.codec = "ternary"}, 10));
}

constexpr Link kGigabit = {.bytes_per_second = 1.25e8, .latency = std::chrono::microseconds(50)};
const std::vector<Measured> kMeasured = {{0.010, {2e-5, 6e-10}}, {0.011, {2e-5, 5e-10}}, {0.009, {3e-5, 4e-10}}};

/// The page for two ways that compute for 10 ms. `floats` and `codes` are the seconds of a whole step. There are two
/// passes: in the first, floats are faster and codes slower by `noise`; in the second, the reverse.
std::string page(double floats, double codes, double noise = 1e-4, const Link& link = kGigabit) {
  const AdviceOptions options = {.workers = 8, .link = link, .batch_size = 64, .threads = 2};
  const auto forecast = [&](const Way& way, double seconds, double sent, double more) -> Forecast {
    return {way, 0.010, {.wait = seconds - 0.010}, sent, {seconds + more, seconds - more}};
  };
  std::vector<Forecast> forecasts = {
      forecast({TrainingMethod::data_parallel, "ternary", "allgather"}, codes, 2e6, noise),
      forecast({TrainingMethod::data_parallel, kFloats, "ring"}, floats, 8e6, -noise)};
  if (floats < codes) std::swap(forecasts[0], forecasts[1]);
  return advice_page(find_model("lenet"), options, kMeasured, forecasts, {});
}

void expect_in(const std::string& page, const std::string& text) {
  EXPECT_NE(page.find(text), std::string::npos) << text << "\nin\n" << page;
}

TEST(AdvicePage, SaysWhetherCompressionPays) {
  const std::string pays = page(0.060, 0.020), does_not = page(0.0112, 0.0118);
  expect_in(pays, "Compression pays: data-parallel ternary by allgather makes a step 3.0 times as fast as float");
  expect_in(pays,
            "fastest: data-parallel ternary by allgather\n  ./dev run train_lenet --batch-size 64 --workers 8 "
            "--codec ternary --exchange allgather\n");
  expect_in(does_not,
            "Compression does not pay here: a step with float gradients takes 11.20 ms, 1.20 of it on the network. ");
  expect_in(does_not, "./dev run train_lenet --batch-size 64 --workers 8 --exchange ring\n");
}

// DiLoCo has the fastest step here, but it ends more than 0.3 points below floats. Ternary codes need more steps than
// floats.
TEST(AdvicePage, NamesTheWayWithTheAccuracyOfFloatsSoonest) {
  const auto page_of = [&](double ternary, TrainingMethod fastest = TrainingMethod::diloco,
                           const std::string& model = "lenet") {
    const auto forecast = [](const Way& way, double seconds) -> Forecast {
      return {way, 0, {.wait = seconds}, 1e6, {seconds, seconds}};
    };
    std::vector<Forecast> forecasts = {forecast({.method = fastest, .exchange = "ring"}, 0.001),
                                       forecast({.codec = "ternary", .exchange = "allgather"}, ternary),
                                       forecast({.exchange = "ring"}, 0.100)};
    const AdviceOptions options = {.workers = 8, .link = kGigabit, .batch_size = 64, .threads = 2};
    return advice_page(find_model(model), options, kMeasured, forecasts, {});
  };
  const std::string sentence = "soonest at 98 % of the accuracy of floats, by steps x, without losing 0.3 points: ";
  const double steps = measured_convergence("lenet", {.codec = "ternary"}, 10)->steps, even = 0.100 / steps;
  expect_in(page_of(0.99 * even), sentence + "the last of these, data-parallel ternary by allgather\n");
  expect_in(page_of(0.99 * even, TrainingMethod::local_sgd), sentence + "the first of these, local-sgd none by ring\n");
  expect_in(page_of(1.01 * even), sentence + "data-parallel none by ring\n  ./dev run train_lenet ");
  expect_in(page_of(1.01 * even), fmt::format(" {:.2f} ", steps));
  const std::string airbench = page_of(0.99 * even, TrainingMethod::demo, "airbench");
  expect_in(airbench, sentence + "data-parallel none by ring\n");
  expect_in(airbench, "  never ");
  const std::string other = page_of(0.99 * even, TrainingMethod::diloco, "resnet20");
  expect_in(other, "measured\nthem for lenet and airbench only.\n");
  EXPECT_EQ(other.find("soonest"), std::string::npos) << "nobody has measured it";
}

// tern refuses a moving average of parameters if each worker has its own model.
TEST(AdvicePage, NamesACommandThatIsTaken) {
  const AdviceOptions options = {.workers = 2, .batch_size = 64};
  const networks::Variant cifarnet = find_model("cifarnet");
  EXPECT_EQ(training_command(cifarnet, options, {TrainingMethod::local_sgd, kFloats, "ring"}),
            "./dev run train_cifarnet --batch-size 64 --workers 2 --method local-sgd --local-steps 10 --ema-decay 0 "
            "--exchange ring");
  EXPECT_EQ(training_command(cifarnet, options, {TrainingMethod::data_parallel, "ternary", "allgather"}),
            "./dev run train_cifarnet --batch-size 64 --workers 2 --codec ternary --exchange allgather");
  EXPECT_EQ(training_command(cifarnet, options, {TrainingMethod::data_parallel, "ternary", "allgather", true}),
            "./dev run train_cifarnet --batch-size 64 --workers 2 --codec ternary --exchange allgather --overlap");
  EXPECT_EQ(training_command(cifarnet, options, {TrainingMethod::noloco}),
            "./dev run train_cifarnet --batch-size 64 --workers 2 --method noloco --local-steps 10 --ema-decay 0");
  EXPECT_EQ(training_command(find_model("lenet"), options, {TrainingMethod::demo}),
            "./dev run train_lenet --batch-size 64 --workers 2 --method demo --optimizer sgd --lr 0.001");
  EXPECT_EQ(training_command(find_model("airbench"), options, {TrainingMethod::demo}),
            "./dev run train_airbench --batch-size 64 --workers 2 --method demo --optimizer sgd --lr 0.001 --group "
            "'*:weight-decay=0'");
  EXPECT_EQ(training_command(find_model("resnet20"), options,
                             {TrainingMethod::ist, kFloats, "peer", false, SubnetScope::filters}),
            "./dev run train_resnet --depth 20 --batch-size 64 --workers 2 --method ist --local-steps 10 --ist-scope "
            "filters --exchange peer");
}

TEST(AdvicePage, ShowsTheFastestExchangeOfEachCodecUnlessAllAreAskedFor) {
  AdviceOptions options = {.workers = 2, .link = kGigabit, .batch_size = 64};
  const auto forecast = [](const Way& way, double seconds) -> Forecast {
    return {.way = way, .compute = seconds, .passes = {seconds, seconds}};
  };
  const std::vector<Forecast> forecasts = {forecast({TrainingMethod::demo}, 0.010),
                                           forecast({TrainingMethod::data_parallel, "ternary", "ternary-ring"}, 0.020),
                                           forecast({TrainingMethod::data_parallel, "ternary", "allgather"}, 0.021),
                                           forecast({TrainingMethod::data_parallel, kFloats, "ring", true}, 0.030),
                                           forecast({TrainingMethod::data_parallel, kFloats, "ring"}, 0.031)};
  const std::string page = advice_page(find_model("lenet"), options, kMeasured, forecasts, {});
  expect_in(page, "\n  demo           -                              -               -            10.00 ");
  expect_in(page, "ternary-ring ");
  expect_in(page, "--all shows the others");
  EXPECT_EQ(page.find("allgather"), std::string::npos) << page;
  options.all = true;
  const std::string all = advice_page(find_model("lenet"), options, kMeasured, forecasts, {});
  expect_in(all, "allgather ");
  EXPECT_EQ(all.find("--all"), std::string::npos) << all;
}

TEST(AdvicePage, MarksWhatIsWithinTheNoiseOfTheFirst) {
  const std::string apart = page(0.0140, 0.0120, 0.0009), tied = page(0.0140, 0.0120, 0.0011);
  expect_in(apart, "\n  data-parallel  none ");
  EXPECT_EQ(apart.find("=: "), std::string::npos) << "a legend of a sign that no row bears, in\n" << apart;
  expect_in(tied, "\n=: within the noise of the first, at least as fast in one of the passes\n");
  expect_in(tied, "\n  data-parallel  ternary ");
  expect_in(tied,
            "\n= data-parallel  none                           ring            -            14.00  12.90 to 15.10 ");
  expect_in(
      tied,
      "Whether compression pays is within the noise: a step with float gradients takes 14.00 ms (12.90 to 15.10), "
      "and with the best\ncodes (data-parallel ternary by allgather) 12.00 ms (10.90 to 13.10).");
}

// The medians of the single times add up to 15 ms. No pass takes that long.
TEST(Forecast, OfSeveralPassesIsTheMedianPass) {
  const auto pass = [](double compute, double encode, double wait) -> Forecast {
    return {.compute = compute, .exchange = {.encode = encode, .wait = wait}};
  };
  const Forecast passes[] = {pass(0.005, 0.006, 0), pass(0.005, 0, 0.005), pass(0, 0.005, 0.007)};
  const Forecast median = median_pass(passes);
  EXPECT_DOUBLE_EQ(median.seconds(), 0.011);
  EXPECT_EQ(median.exchange.encode, 0.006);
  EXPECT_EQ(median.passes, (std::vector<double>{passes[0].seconds(), passes[1].seconds(), passes[2].seconds()}));
}

// The machine's drift affects all ways of a pass alike. It hides no gain.
TEST(Forecast, IsSurelyFasterWhereEveryPassHasItSo) {
  const Forecast slow = {.way = {}, .passes = {0.010, 0.020, 0.030}},
                 fast = {.way = {}, .passes = {0.009, 0.019, 0.029}},
                 mixed = {.way = {}, .passes = {0.009, 0.019, 0.031}};
  EXPECT_TRUE(fast.surely_faster(slow));
  EXPECT_FALSE(slow.surely_faster(fast));
  EXPECT_FALSE(mixed.surely_faster(slow));
}

TEST(AdvicePage, TellsWhatIsStatedFromWhatIsMeasured) {
  const std::string slower = page(0.060, 0.020);
  expect_in(slower, "\nstated: each has a cable of 1 Gbit/s, 0.05 ms\nmeasured, 3 times: ");
  expect_in(slower,
            ": a step computes for 10.00 ms (9.00 to 11.00); a message takes 0.020 ms plus its time on the link\n");
  expect_in(page(0.060, 0.020, 0, {.bytes_per_second = 1.25e10}),
            "a cable of 100 Gbit/s, no latency; this machine copies only 16.0 Gbit/s from rank to rank,\n  so "
            "the times below use that rate\n");
}

}  // namespace
}  // namespace tern::advise
