#include "tern/apps/reproduce/lstm_setting.h"

#include <fmt/format.h>

#include "tern/core/error.h"
#include "tern/networks/lstm.h"

namespace tern::reproduce {
namespace {

constexpr int64_t kUtterancesOfStep = 16, kUtterances = 948;
constexpr int64_t kStepsOfPass = kUtterances / kUtterancesOfStep;
constexpr int64_t kQuickPasses = 10;
constexpr double kQuickRate = 0.003;

}  // namespace

LstmSetting::LstmSetting(const char* experiment, const ExperimentOptions& options, int64_t usual_seeds)
    : quick(options.quick), data{.name = "an4", .folder = options.data_dir} {
  check_input(options.data.empty() || options.data == data.name, "--data: found '", options.data, "', expected an4");
  check_input(!data.folder.empty(), experiment, " needs --data-dir DIR with the corpus AN4 as cepstra, or its archive");
  const int64_t passes = quick ? kQuickPasses : networks::lstm().recipe.defaults.epochs.value();
  workers = choose_workers(options, 2, kUtterancesOfStep);
  iterations = options.iterations.value_or(passes * kStepsOfPass);
  seeds = options.seeds.value_or(usual_seeds);
}

std::string LstmSetting::sentences() const {
  const auto& recipe = networks::lstm().recipe.defaults;
  return fmt::format(
      "{} on AN4 with CTC over phones, {} workers, total batch {} utterances, {} passes of {} steps. Batches hold "
      "utterances of similar length, and gradients go back through whole utterances. Adam, a learning rate that rises "
      "to {} in the first {:.0f} % of the run and then falls along a cosine, gradients scaled down to a norm of {}. "
      "Codes have 4 bits, and buckets of 512 scaled by their maximum. Matrices of fewer than 10,000 elements travel as "
      "floats.{}",
      quick ? "A small LSTM, 1 layer of 128 cells projected to 64," : "3 layers of LSTM, 1024 cells projected to 512,",
      workers, kUtterancesOfStep, (iterations + kStepsOfPass - 1) / kStepsOfPass, kStepsOfPass,
      quick ? kQuickRate : recipe.lr, 100 * recipe.warmup, recipe.clip_norm,
      quick ? " **This is the short form: a smaller network, and few passes.**" : "");
}

CodecComparisonPlan LstmSetting::plan(const std::string& title, const std::string& more_setting,
                                      const std::vector<std::string>& more) const {
  std::vector<std::string> flags = {"--batch-size", std::to_string(kUtterancesOfStep)};
  if (quick)
    flags.insert(flags.end(),
                 {"--layers", "1", "--hidden", "128", "--projection", "64", "--lr", fmt::format("{}", kQuickRate)});
  flags.insert(flags.end(), more.begin(), more.end());
  return {.title = title,
          .setting = sentences() + more_setting,
          .program = networks::lstm().program(),
          .data = data,
          .flags = flags,
          .codecs = {scored(kFloat, 81.13), scored(kBits4, 81.15)},
          .min_compress = kSmallMatrix,
          .workers = workers,
          .iterations = iterations,
          .seeds = seeds,
          .checkpoint_every = kStepsOfPass,
          .score = "phone error rate",
          .papers_score = "accuracy of frames",
          .lower_is_better = true};
}

}  // namespace tern::reproduce
