#include "tern/apps/reproduce/qsgd_thm36.h"

#include <fmt/format.h>

#include <cmath>

#include "tern/apps/reproduce/papers.h"
#include "tern/apps/reproduce/qsvrg.h"
#include "tern/apps/reproduce/study_options.h"
#include "tern/trainer/report/chart.h"

namespace tern {
namespace {

using namespace trainer;

constexpr uint64_t kSeed = 1;

/// f(y) − f* at the start and after every epoch, and the bits of every epoch.
Numbers descend(const QsgdTheorem36::Problem& problem, const std::string& codec, int64_t epochs,
                const StudyProgress& progress) {
  const LinearProblem linear(problem.loss, problem.examples(), problem.condition);
  const double least = linear.value(linear.minimizer());
  Qsvrg qsvrg(linear, Qsvrg::Vector(static_cast<size_t>(linear.dimensions())),
              {.processors = QsgdTheorem36::kProcessors,
               .codec = codec,
               .rate = QsgdTheorem36::kRateTimesL / linear.smoothness(),
               .steps = static_cast<int64_t>(QsgdTheorem36::steps(problem)),
               .seed = kSeed});
  Numbers numbers = {{"gap", {linear.value(qsvrg.y()) - least}}, {"bits", {}}};
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    numbers["bits"].push_back(qsvrg.run_epoch());
    numbers["gap"].push_back(linear.value(qsvrg.y()) - least);
    progress(epoch);
  }
  return numbers;
}

}  // namespace

std::span<const QsgdTheorem36::Problem> QsgdTheorem36::problems() {
  static const Problem all[] = {{.name = "ridge",
                                 .title = "ridge regression, 512 drawn examples, n = 1024, κ = 10",
                                 .loss = LinearLoss::squared,
                                 .examples = [] { return drawn_examples(512, 1024, kSeed); },
                                 .dimensions = 1024,
                                 .condition = 10},
                                {.name = "logistic",
                                 .title = "logistic regression, 1000 drawn digits odd or even, n = 784, κ = 50",
                                 .loss = LinearLoss::logistic,
                                 .examples = [] { return digit_examples(1000, kSeed); },
                                 .dimensions = 784,
                                 .condition = 50}};
  return all;
}

std::span<const QsgdTheorem36::Method> QsgdTheorem36::methods() {
  static const Method all[] = {
      {.name = "svrg", .label = "SVRG, floats", .code = nullptr, .color = kBlue},
      {.name = "qsvrg-entropy", .label = "QSVRG, entropy", .code = "entropy", .color = kOrange},
      {.name = "qsvrg-elias", .label = "QSVRG, Elias", .code = "elias", .color = kPurple}};
  return all;
}

QsgdTheorem36::QsgdTheorem36(const ExperimentOptions& options) : epochs_(options.quick ? 4 : 8) {
  check_trains_nothing("qsgd-thm3.6", options);
}

std::string QsgdTheorem36::run_name(const Problem& problem, const Method& method) {
  return fmt::format("{}-{}", problem.name, method.name);
}

/// s = √n levels, the nearest whole number.
std::string QsgdTheorem36::codec(const Problem& problem, const Method& method) {
  if (method.code == nullptr) return "none";
  const auto levels = std::llround(std::sqrt(static_cast<double>(problem.dimensions)));
  return fmt::format("qsgd:levels={},bucket=0,code={}", levels, method.code);
}

std::vector<Run> QsgdTheorem36::runs() const {
  std::vector<Run> all;
  for (const Problem& problem : problems())
    for (const Method& method : methods()) {
      const std::string spec = codec(problem, method);
      all.push_back({.name = run_name(problem, method),
                     .flags = {fmt::format("problem={}", problem.name), fmt::format("codec={}", spec),
                               fmt::format("kappa={}", problem.condition), fmt::format("epochs={}", epochs_)},
                     .places = {},
                     .columns = {{"problem", problem.name}, {"method", method.name}},
                     .study = [&problem, spec, epochs = epochs_](const StudyProgress& progress) {
                       return descend(problem, spec, epochs, progress);
                     }});
    }
  return all;
}

std::unique_ptr<Experiment> make_qsgd_thm36(const ExperimentOptions& options) {
  return std::make_unique<QsgdTheorem36>(options);
}

}  // namespace tern
