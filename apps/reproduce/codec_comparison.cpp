#include "tern/apps/reproduce/codec_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/core/error.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

bool is_float(const ComparedCodec& codec) { return std::string_view(codec.spec) == "none"; }

std::vector<double> percent_of(const std::vector<const RunResult*>& results) {
  std::vector<double> scores;
  for (const RunResult* result : results) scores.push_back(100 * result->score);
  return scores;
}

constexpr size_t kLossPoints = 100;

/// The range of all lines; at least one percentage point.
std::pair<double, double> score_range(const Chart& chart) {
  const auto found = extent(chart.series);
  if (!found) return {0, 100};
  const auto [low, high] = *found;
  const double margin = std::max(0.05 * (high - low), (1 - (high - low)) / 2);
  return {low - margin, high + margin};
}

}  // namespace

void refuse_seeds(const char* experiment, const ExperimentOptions& options) {
  check_input(!options.seeds, "--seeds would change nothing: ", experiment, " shows one run of each kind");
}

int64_t choose_workers(const ExperimentOptions& options, int64_t usual, int64_t batch, int64_t least) {
  check_input(options.workers.size() <= 1, "--workers: found ", options.workers.size(), " numbers, expected one");
  const int64_t workers = options.workers.empty() ? usual : options.workers.front();
  check_input(workers >= least && batch % workers == 0, "--workers: found ", workers, ", expected a number from ",
              least, " that shares the batch of ", batch, " equally");
  return workers;
}

std::vector<std::string> code_flags(const ComparedCodec& codec) {
  return {"--codec", codec.spec, "--exchange", "allgather", "--min-compress", std::to_string(kSmallMatrix)};
}

const char* not_the_papers(const DataChoice& data, const char* papers) {
  return data.name == papers ? "" : ", **not on the paper's data**";
}

Run CodecComparison::make_run(const ComparedCodec& codec, int64_t seed) const {
  Run run = {
      .name = fmt::format("{}-{}-workers-{}-steps-seed-{}", codec.name, plan_.workers, plan_.iterations, seed),
      .program = plan_.program,
      .flags = {"--data", plan_.data.name},
      .places = plan_.data.places(),
      .steps = plan_.iterations,
      .columns = {{"codec", codec.name}, {"workers", std::to_string(plan_.workers)}, {"seed", std::to_string(seed)}},
      .checkpoint_every = plan_.checkpoint_every};
  run.flags.insert(run.flags.end(), plan_.flags.begin(), plan_.flags.end());
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  add({"--iterations", std::to_string(plan_.iterations), "--seed", std::to_string(seed)});
  add({"--workers", std::to_string(plan_.workers), "--transport", "inproc", "--codec", codec.spec});
  add({"--exchange", is_float(codec) ? "ring" : "allgather"});
  if (plan_.min_compress > 0 && !is_float(codec)) add({"--min-compress", std::to_string(plan_.min_compress)});
  return run;
}

std::vector<Run> CodecComparison::runs() const {
  std::vector<Run> all;
  for (int64_t seed = 1; seed <= plan_.seeds; ++seed)
    for (const ComparedCodec& codec : plan_.codecs) all.push_back(make_run(codec, seed));
  return all;
}

std::vector<const RunResult*> CodecComparison::results_of(const ComparedCodec& codec, const Results& results) const {
  std::vector<const RunResult*> found;
  for (int64_t seed = 1; seed <= plan_.seeds; ++seed)
    if (const auto result = results.find(make_run(codec, seed).name); result != results.end())
      found.push_back(&result->second);
  return found;
}

std::optional<double> CodecComparison::elements(const Results& results) const {
  const auto found = results_of(plan_.codecs.front(), results);
  if (found.empty() || !found.front()->bytes_sent_payload) return std::nullopt;
  const auto n = static_cast<double>(plan_.workers), steps = static_cast<double>(plan_.iterations);
  return static_cast<double>(*found.front()->bytes_sent_payload) / steps * n / (8 * (n - 1));
}

std::string CodecComparison::table(const Results& results) const {
  const bool same_score = plan_.papers_score.empty();
  const std::string papers = same_score ? "the paper's" : "the paper's " + plan_.papers_score + ", %";
  std::vector<std::vector<std::string>> rows = {{"gradients", "`--codec`", plan_.score + ", %", papers, "difference",
                                                 "points worse than float", "the paper's", "bits per element",
                                                 "MB sent by a worker in a step", "training, s"}};
  const std::vector<double> floats = percent_of(results_of(plan_.codecs.front(), results));
  const std::optional<double> elements = this->elements(results);
  for (const ComparedCodec& codec : plan_.codecs) {
    const auto found = results_of(codec, results);
    std::vector<std::string> row = {codec.label, fmt::format("`{}`", codec.spec)};
    row.resize(rows.front().size(), "–");
    rows.push_back(row);
    if (codec.paper) rows.back()[3] = fmt::format("{:.2f}", *codec.paper);
    if (codec.paper && plan_.codecs.front().paper && !is_float(codec))
      rows.back()[6] = fmt::format("{:+.2f}", *plan_.codecs.front().paper - *codec.paper);
    if (found.empty()) continue;
    const Sample score = summarize(percent_of(found));
    rows.back()[2] = mean_cell(score);
    if (codec.paper && same_score) rows.back()[4] = fmt::format("{:+.2f}", score.mean - *codec.paper);
    const double sign = plan_.lower_is_better ? -1 : 1;
    if (!floats.empty() && !is_float(codec))
      rows.back()[5] = fmt::format("{:+.2f}", sign * (summarize(floats).mean - score.mean));
    const double payload =
        static_cast<double>(found.front()->bytes_sent_payload.value_or(0)) / static_cast<double>(plan_.iterations);
    if (elements)
      rows.back()[7] = is_float(codec)
                           ? "32"
                           : fmt::format("{:.2f}", 8 * payload / (static_cast<double>(plan_.workers - 1) * *elements));
    rows.back()[8] = fmt::format("{:.3f}", payload / 1e6);
    rows.back()[9] = fmt::format("{:.0f}", found.front()->seconds);
  }
  return markdown_table(rows);
}

std::string CodecComparison::figure(const Results& results) const {
  Chart loss = {.title = "Training loss", .x_label = "step", .series = {}, .y_scale = Scale::logarithmic},
        scores = {.title = "Test " + plan_.score, .x_label = "step", .series = {}, .y_suffix = " %"},
        sent = {.title = "Training loss", .x_label = "MB sent by a worker", .series = {}};
  sent.y_scale = Scale::logarithmic;
  for (size_t i = 0; i < plan_.codecs.size(); ++i) {
    const auto found = results_of(plan_.codecs[i], results);
    if (found.empty()) continue;
    Series series = {.label = plan_.codecs[i].label,
                     .color = kPalette[i],
                     .points = block_means(found.front()->losses, kLossPoints)};
    if (is_float(plan_.codecs[i])) {  // the other lines may cover it
      series.width = 8;
      series.opacity = 0.35;
    }
    loss.series.push_back(series);
    const double megabytes = static_cast<double>(found.front()->bytes_sent_payload.value_or(0)) / 1e6;
    for (auto& [x, y] : series.points) x = std::log10(x * megabytes / static_cast<double>(plan_.iterations));
    sent.series.push_back(series);
    series.points.clear();
    series.markers = true;
    for (const CurvePoint& point : found.front()->curve)
      series.points.emplace_back(static_cast<double>(point.step), 100 * point.score);
    scores.series.push_back(series);
  }
  const auto last = static_cast<double>(plan_.iterations);
  const auto evaluated = extent(scores.series, &Point::first);
  scores.x_range = {evaluated && evaluated->first < last ? evaluated->first : 0, last};
  scores.y_range = score_range(scores);
  for (int power = -2; power <= 6; ++power) sent.x_ticks.emplace_back(power, tick_label(std::pow(10, power)));
  const bool has_losses = extent(loss.series).has_value();  // false if all runs come from kept files
  const auto charts = has_losses ? std::vector{loss, scores, sent} : std::vector{scores};
  return draw_charts(
      plan_.title, fmt::format("{} · {} workers · {} steps · seed 1", plan_.data.name, plan_.workers, plan_.iterations),
      charts);
}

Report CodecComparison::report(const Results& results) const {
  return {.text = plan_.setting + "\n\n" + table(results),
          .figures = {{"curves.svg", figure(results)}},
          .tables = {},
          .title = plan_.title};
}

}  // namespace tern::reproduce
