#include <fmt/format.h>

#include <optional>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/lstm_setting.h"

namespace tern::reproduce {
namespace {

/// The row "LSTM, AN4" of QSGD's Table 1: phone errors with floats and 4 bits, and the time of a step behind two links.
class QsgdTable1Lstm final : public Experiment {
 public:
  explicit QsgdTable1Lstm(const ExperimentOptions& options)
      : setting_("qsgd-table1-lstm", options, 2),
        plan_(setting_.plan("QSGD, Table 1: LSTM on AN4", kPaper, {})),
        training_(plan_) {}

  std::vector<Run> runs() const override {
    std::vector<Run> all = training_.runs();
    for (const Link& link : kLinks)
      for (const ComparedCodec& codec : plan_.codecs) all.push_back(timed_run(link, codec));
    return all;
  }

  Report report(const Results& results) const override {
    Report report = training_.report(results);
    report.text += fmt::format(
        "\n## Time of a step\n\nEach is the median of {} steps behind `--link`. The workers are threads of one "
        "machine and share its cores, so a step computes for {} workers in turn. Nothing overlaps; the paper uses "
        "double buffering.\n\n{}",
        timed_steps(), setting_.workers, times(results));
    return report;
  }

 private:
  struct Link {
    const char *name, *word, *flag;
  };
  static constexpr Link kLinks[] = {{"1 Gbit/s", "1gbit", "rate=1gbit,latency=0.1ms"},
                                    {"100 Mbit/s", "100mbit", "rate=100mbit,latency=0.1ms"}};
  static constexpr const char* kPaper =
      "\n\nThe paper trains on labels of every frame, which the corpus does not have, and gives the accuracy of "
      "frames: 81.13 % with floats and 81.15 % with 4 bits, 2 times faster on 2 GPUs. So only the loss to the float "
      "row is comparable.";

  int64_t timed_steps() const { return setting_.quick ? 5 : 10; }

  Run timed_run(const Link& link, const ComparedCodec& codec) const {
    const bool floats = &codec == &plan_.codecs.front();
    Run run = {
        .name = fmt::format("{}-{}-workers-{}-timed-steps-{}", codec.name, setting_.workers, timed_steps(), link.word),
        .program = plan_.program,
        .flags = {"--data", plan_.data.name},
        .places = plan_.data.places(),
        .steps = timed_steps(),
        .columns = {{"codec", codec.name}, {"workers", std::to_string(setting_.workers)}, {"link", link.name}},
        .measures_time = true};
    run.flags.insert(run.flags.end(), plan_.flags.begin(), plan_.flags.end());
    const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
    add({"--iterations", std::to_string(timed_steps()), "--workers", std::to_string(setting_.workers)});
    add({"--transport", "inproc", "--link", link.flag, "--codec", codec.spec, "--check-every", "0"});
    add({"--exchange", floats ? "ring" : "allgather"});
    if (!floats) add({"--min-compress", std::to_string(plan_.min_compress)});
    return run;
  }

  std::string times(const Results& results) const {
    std::vector<std::vector<std::string>> rows = {{"link", "gradients", "step, s", "float ÷ it"}};
    for (const Link& link : kLinks) {
      std::optional<double> whole;
      for (const ComparedCodec& codec : plan_.codecs) {
        rows.push_back({link.name, codec.label, "–", "–"});
        const auto found = results.find(timed_run(link, codec).name);
        if (found == results.end()) continue;
        const double seconds = found->second.step_seconds;
        rows.back()[2] = fmt::format("{:.2f}", seconds);
        if (&codec == &plan_.codecs.front())
          whole = seconds;
        else if (whole)
          rows.back()[3] = fmt::format("{:.2f}", *whole / seconds);
      }
    }
    return markdown_table(rows);
  }

  LstmSetting setting_;
  CodecComparisonPlan plan_;
  CodecComparison training_;
};

}  // namespace

ExperimentEntry qsgd_table1_lstm() {
  return {.name = "qsgd-table1-lstm",
          .title = "QSGD, Table 1: LSTM on AN4, float against 4 bits, 2 workers",
          .data = "AN4 as cepstra: --data-dir DIR",
          .time = "about 15 minutes a run on 2 cores, four runs; with --quick a smaller network",
          .device = kAnyDevice,
          .make = make_experiment<QsgdTable1Lstm>};
}

}  // namespace tern::reproduce
