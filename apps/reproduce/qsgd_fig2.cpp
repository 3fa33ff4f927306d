#include "tern/apps/reproduce/qsgd_fig2.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tern/apps/reproduce/papers.h"
#include "tern/core/error.h"
#include "tern/trainer/report/chart.h"

namespace tern {

using namespace trainer;

std::span<const QsgdFigure2::Network> QsgdFigure2::networks() {
  static const Network all[] = {{.name = "lenet",
                                 .title = "LeNet, 1.26 million parameters, batch 64",
                                 .program = "train_lenet",
                                 .flags = {"--data", "digits"},
                                 .batch = 64,
                                 .epoch = 60'000,
                                 .steps = 200,
                                 .steps_if_quick = 60},
                                {.name = "resnet20",
                                 .title = "ResNet-20, 0.27 million parameters, batch 128",
                                 .program = "train_resnet",
                                 .flags = {"--depth", "20", "--data", "shapes"},
                                 .batch = 128,
                                 .epoch = 50'000,
                                 .steps = 60,
                                 .steps_if_quick = 12}};
  return all;
}

std::span<const QsgdFigure2::Method> QsgdFigure2::methods() {
  static const Method all[] = {
      {.name = "32-bit", .label = "32 bit", .codec = "none", .exchange = "ring", .color = kBlue},
      {.name = "4-bit",
       .label = "4 bit",
       .codec = "qsgd:bits=4,bucket=512,norm=max",
       .exchange = "allgather",
       .color = kOrange}};
  return all;
}

QsgdFigure2::QsgdFigure2(const ExperimentOptions& options)
    : quick_(options.quick), iterations_(options.iterations), workers_(options.workers) {
  check_input(options.data.empty() && options.data_dir.empty(),
              "--data would change nothing: qsgd-fig2 draws its data");
  check_input(!options.seeds, "--seeds would change nothing: qsgd-fig2 measures time");
  if (workers_.empty()) workers_ = {2, 4, 8};
  const std::set<int64_t> rising(workers_.begin(), workers_.end());
  workers_.assign(rising.begin(), rising.end());
  for (const int64_t workers : workers_)
    for (const Network& network : networks())
      check_input(workers >= 2 && network.batch % workers == 0, "--workers: found ", workers,
                  ", expected a number from 2 that shares batches of 64 and 128 equally");
}

int64_t QsgdFigure2::steps(const Network& network) const {
  return iterations_.value_or(quick_ ? network.steps_if_quick : network.steps);
}

std::string QsgdFigure2::run_name(const Network& network, const Method& method, int64_t workers) const {
  return fmt::format("{}-{}-{}-workers-{}-steps", network.name, method.name, workers, steps(network));
}

std::vector<Run> QsgdFigure2::runs() const {
  std::vector<Run> all;
  for (const Network& network : networks())
    for (const int64_t workers : workers_)
      for (const Method& method : methods()) {
        Run run = {
            .name = run_name(network, method, workers),
            .program = network.program,
            .flags = network.flags,
            .places = {},
            .steps = steps(network),
            .columns = {{"network", network.name}, {"gradients", method.name}, {"workers", std::to_string(workers)}}};
        const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
        add({"--batch-size", std::to_string(network.batch), "--iterations", std::to_string(steps(network))});
        add({"--workers", std::to_string(workers), "--transport", "inproc", "--link", kLink});
        add({"--codec", method.codec, "--exchange", method.exchange, "--check-every", "0"});
        if (&method != &methods().front()) add({"--min-compress", "10000"});
        all.push_back(run);
      }
  return all;
}

std::optional<TimeShares> QsgdFigure2::epoch_of(const Network& network, const Method& method, int64_t workers,
                                                const Results& results) const {
  const auto found = results.find(run_name(network, method, workers));
  if (found == results.end() || !found->second.time) return std::nullopt;
  const auto steps_of_epoch = static_cast<double>(network.epoch) / static_cast<double>(network.batch);
  const double scale = steps_of_epoch / static_cast<double>(steps(network));
  const TimeShares& time = *found->second.time;
  return TimeShares{.compute = scale * time.compute,
                    .encode = scale * time.encode,
                    .wait = scale * time.wait,
                    .decode = scale * time.decode};
}

std::unique_ptr<Experiment> make_qsgd_fig2(const ExperimentOptions& options) {
  return std::make_unique<QsgdFigure2>(options);
}

}  // namespace tern
