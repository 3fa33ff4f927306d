#include "tern/trainer/report/json_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/trainer/flags/flag_table.h"
#include "tern/trainer/rank/machine.h"

namespace tern::trainer {
namespace {

using Json = nlohmann::ordered_json;

/// Removes a half line at the end, which a killed process may leave. It would make the next line invalid.
void drop_unfinished_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return;
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t whole = text.rfind('\n') + 1;
  if (whole < text.size()) std::filesystem::resize_file(path, whole);
}

Json json_of(const auto& value) { return value; }
Json json_of(const Worded auto& value) { return to_string(value); }
template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : Json(nullptr);
}

Json to_json(const TrainSettings& settings) {
  Json object;
  visit_flags(settings, [&](const Flag& flag, const auto& field) {
    if (!flag.offered) return;
    std::string key = flag.name;
    std::ranges::replace(key, '-', '_');
    object[key] = json_of(field);
  });
  for (const auto& [flag, value] : settings.choices) object[flag] = value;
  for (const auto& [flag, value] : settings.counts) object[flag] = value;
  return object;
}

/// The bytes that rank 0 sends; rank 0 writes the log.
Json sent(const Traffic& traffic) {
  return {{"bytes_sent_payload", traffic.sent_payload}, {"bytes_sent_overhead", traffic.sent_overhead}};
}

Json seconds_of(const ExchangeTimes& times) {
  return {{"encode_seconds", times.encode}, {"wait_seconds", times.wait}, {"decode_seconds", times.decode}};
}

/// Replaces bytes that are not UTF-8, because a file name may contain them.
std::string text_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

JsonLog::JsonLog(const std::string& path, bool append) : path_(path), file_(nullptr, &std::fclose) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  check_written(descriptor >= 0);
  file_.reset(::fdopen(descriptor, "a"));
  check_written(file_ != nullptr);
  // Until the lock is held, the lines may be another run's. File systems without locks give no protection.
  check_input(::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, "--log: ", path,
              ": another run writes it; wait for its end, or name another file");
  if (append)
    drop_unfinished_line(path);
  else
    check_written(::ftruncate(descriptor, 0) == 0);
  sync_folder(std::filesystem::absolute(path).parent_path());
}

void JsonLog::started(const RunStart& run) {
  team_ = run.settings.workers.has_value();
  target_ = run.settings.target_score.has_value();
  scores_ = run.scores;
  noun_ = run.noun;
  Json line = {{"event", "start"}, {"application", run.application}};
  line.update(to_json(run.settings));
  for (const auto& [name, version] : versions()) line["versions"][name] = version;
  line.update({{"processor", processor_identity()},
               {"training_" + run.noun, run.training_samples},
               {"test_" + run.noun, run.test_samples},
               {"steps_per_epoch", run.steps_per_epoch},
               {"total_steps", run.total_steps},
               {"first_step", run.first_step},
               {"parameters", run.parameters}});
  for (const Score& score : run.scores)
    line["scores"].push_back(
        {{"name", score.name}, {"unit", score.unit}, {"higher_is_better", score.higher_is_better}});
  if (!run.launcher.empty()) line["launcher"] = run.launcher;
  write_line(text_of(line));
}

void JsonLog::noted(const std::string& note) { write_line(text_of(Json{{"event", "note"}, {"text", note}})); }

void JsonLog::stepped(const StepReport& report) {
  Json line = {{"event", "step"},     {"step", report.step}, {"epoch", report.epoch},
               {"loss", report.loss}, {"lr", report.lr},     {"seconds", report.seconds}};
  if (report.gradient_norm) line["gradient_norm"] = *report.gradient_norm;
  if (team_) {
    line.update(sent(report.traffic));
    line.update(seconds_of(report.times));
  }
  write_line(text_of(line));
}

void JsonLog::counted(const HistogramReport& report) {
  const auto all = [](const std::map<std::string, Histogram>& histograms) {
    Json object = Json::object();
    for (const auto& [name, found] : histograms)
      object[name] = {
          {"low", found.low}, {"high", found.high}, {"counts", found.counts}, {"not_finite", found.not_finite}};
    return object;
  };
  write_line(text_of({{"event", "histograms"},
                      {"step", report.step},
                      {"weights", all(report.weights)},
                      {"gradients", all(report.gradients)}}));
}

void JsonLog::evaluated(const EvaluationReport& report) {
  Json line = {{"event", "eval"}, {"step", report.step}, {"epoch", report.epoch}};
  for (size_t i = 0; i < report.scores.size(); ++i) line[scores_[i].key()] = report.scores[i];
  line["loss"] = report.loss;
  write_line(text_of(line));
}

void JsonLog::ended(const RunReport& report) {
  Json line = {{"event", "done"}};
  for (size_t i = 0; i < report.scores.size(); ++i) line[scores_[i].key()] = report.scores[i];
  line.update({{"loss", report.loss},
               {"seconds", report.seconds},
               {"steps", report.steps},
               {noun_ + "_per_second", report.samples_per_second},
               {"data_wait", report.data_wait},
               {"peak_memory", report.peak_memory}});
  if (target_) line["reached_target"] = report.reached_target;
  if (report.peak_device_memory) line["peak_device_memory"] = *report.peak_device_memory;
  for (const auto& [name, calls, seconds] : report.operations)
    line["operations"][name] = {{"calls", calls}, {"seconds", seconds}};
  if (report.team) {
    const TeamReport& team = *report.team;
    line.update(sent(team.traffic));
    line["bytes_ratio_float_ring"] = team.float_ring_ratio > 0 ? Json(team.float_ring_ratio) : Json(nullptr);
    line["compute_seconds"] = team.compute;
    line["largest_peak_memory"] = team.peak_memory;
    line.update(seconds_of(team.times));
  }
  write_line(text_of(line));
}

void JsonLog::checkpointing() { check_written(::fdatasync(::fileno(file_.get())) == 0); }

void JsonLog::write_line(const std::string& line) {
  check_written(std::fputs((line + '\n').c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0);
}

void JsonLog::check_written(bool written) const {
  check_input(written, "--log: ", path_, ": cannot be written: ", std::strerror(errno));
}

}  // namespace tern::trainer
