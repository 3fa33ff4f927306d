#include "tern/apps/reproduce/engine/run_files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/task.h"

namespace tern::reproduce {
namespace {

using Json = nlohmann::json;

/// The last complete line as JSON. Null if it is the first line or longer than 4 KiB; only the first line is that long.
Json last_event(const std::filesystem::path& log) {
  constexpr std::streamoff kMost = 4096;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff length = std::min<std::streamoff>(kMost, file.tellg());
  file.seekg(-length, std::ios::end);
  std::string text(static_cast<size_t>(length), '\0');
  file.read(text.data(), length);
  const size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return {};
  const size_t begin = text.rfind('\n', end - 1);
  if (begin == std::string::npos) return {};
  const Json event = Json::parse(text.substr(begin + 1, end - begin - 1), nullptr, false);
  return event.is_object() ? event : Json();
}

std::optional<int64_t> number(const Json& event, const char* key) {
  return event.contains(key) ? std::optional(event[key].get<int64_t>()) : std::nullopt;
}

/// Collects steps and evaluations in the order of the log. If a resumed run repeats some, the later ones count.
class RunEvents {
 public:
  void add(const Json& event) {
    const std::string kind = event.value("event", "");
    if (kind == "start") {
      const std::string processor = event.value("processor", "");
      processor_ = starts_++ == 0 || processor == processor_ ? processor : "";
    }
    if (kind == "start" && event.contains("scores") && !event["scores"].empty()) {
      keys_.clear();
      for (const Json& score : event["scores"]) keys_.push_back(Score{.name = score.at("name")}.key());
    }
    if (kind == "step") add_step(event);
    if (kind == "eval") add_evaluation(event);
  }

  const std::vector<std::string>& score_keys() const { return keys_; }

  void describe(RunResult& result) const {
    result.curve = curve_;
    result.score_key = keys_.front();
    result.processor = processor_;
    // A resumed run's `done` line has the shares of its last process only.
    if (result.time && starts_ > 1) result.time = shares(result.seconds);
    std::vector<double> durations;
    double before = 0;
    for (const Step& step : steps_) {
      result.losses.push_back(step.loss);
      durations.push_back(step.seconds - before);
      before = step.seconds;
    }
    if (durations.empty()) return;
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::ranges::nth_element(durations, middle);
    result.step_seconds = *middle;
  }

 private:
  struct Step {
    double loss = 0, seconds = 0;
    int64_t bytes = 0;  ///< sent since the first step
    double encode = 0, wait = 0, decode = 0;
  };

  /// How a run of so many seconds spent them. What ranks exchange outside of steps counts as computation.
  TimeShares shares(double seconds) const {
    TimeShares time;
    for (const Step& step : steps_) {
      time.encode += step.encode;
      time.wait += step.wait;
      time.decode += step.decode;
    }
    time.compute = seconds - time.total();
    return time;
  }

  void add_step(const Json& event) {
    const auto number = event.at("step").get<int64_t>();
    go_back_to(number - 1);
    const int64_t before = steps_.empty() ? 0 : steps_.back().bytes;
    steps_.push_back({.loss = event.value("loss", 0.0),
                      .seconds = event.value("seconds", 0.0),
                      .bytes = before + event.value("bytes_sent_payload", int64_t{0}) +
                               event.value("bytes_sent_overhead", int64_t{0}),
                      .encode = event.value("encode_seconds", 0.0),
                      .wait = event.value("wait_seconds", 0.0),
                      .decode = event.value("decode_seconds", 0.0)});
  }

  void add_evaluation(const Json& event) {
    const auto number = event.at("step").get<int64_t>();
    go_back_to(number);
    if (!curve_.empty() && curve_.back().step == number) curve_.pop_back();
    const Step done = steps_.empty() ? Step() : steps_.back();
    curve_.push_back({.step = number,
                      .seconds = done.seconds,
                      .score = event.value(keys_.front(), 0.0),
                      .loss = event.value("loss", 0.0),
                      .bytes_sent = done.bytes});
  }

  /// Drops everything after `step`, because the log repeats it.
  void go_back_to(int64_t step) {
    steps_.resize(static_cast<size_t>(std::max<int64_t>(step, 0)));
    while (!curve_.empty() && curve_.back().step > step) curve_.pop_back();
  }

  std::vector<Step> steps_;
  std::vector<CurvePoint> curve_;
  int starts_ = 0;
  std::string processor_;
  std::vector<std::string> keys_ = {RunResult().score_key};  ///< of the scores
};

constexpr const char* kSum = "crc32c";

/// Checksum of the other entries, as serialized.
uint32_t sum_of(const Json& kept) {
  const std::string text = kept.dump();
  return crc32c(std::as_bytes(std::span(text)));
}

/// Writes `kept` with its checksum.
void write_summed(const std::filesystem::path& path, Json kept) {
  kept[kSum] = sum_of(kept);
  write_text(path, kept.dump() + '\n');
}

/// What write_summed wrote; null if the file is missing, damaged, or another one.
Json read_summed(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return {};
  std::ifstream file(path);
  Json kept = Json::parse(file, nullptr, false);
  if (!kept.is_object() || !kept.contains(kSum)) return {};
  const Json sum = kept[kSum];
  kept.erase(kSum);
  return sum == sum_of(kept) ? kept : Json();
}

/// JSON has no NaN; a loss that is none is null.
double real(const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

[[noreturn]] void fail_damaged(const std::filesystem::path& log) {
  fail_input({log.string(), ": is damaged, expected the log of a run; remove its folder to repeat the run"});
}

std::string command_of(const Run& run) { return run.program + ' ' + shell_command(run.flags); }

}  // namespace

std::optional<RunResult> read_result(const std::filesystem::path& log) try {
  const Json done = last_event(log);
  if (done.is_null() || done.value("event", "") != "done") return std::nullopt;
  RunResult result = {.loss = done.at("loss"),
                      .seconds = done.at("seconds"),
                      .bytes_sent_payload = number(done, "bytes_sent_payload"),
                      .bytes_sent_overhead = number(done, "bytes_sent_overhead")};
  if (done.contains("compute_seconds"))
    result.time = {.compute = done.at("compute_seconds"),
                   .encode = done.at("encode_seconds"),
                   .wait = done.at("wait_seconds"),
                   .decode = done.at("decode_seconds")};
  RunEvents events;
  std::ifstream file(log);
  bool unfinished = false;
  for (std::string line; std::getline(file, line);) {
    const Json event = Json::parse(line, nullptr, false);
    // A process that was killed can leave an unfinished line. The next process begins with `start`.
    if (unfinished && (!event.is_object() || event.value("event", "") != "start")) fail_damaged(log);
    unfinished = !event.is_object();
    if (!unfinished) events.add(event);
  }
  events.describe(result);
  for (const std::string& key : events.score_keys()) result.scores[key] = done.at(key);
  result.score = result.scores.at(result.score_key);
  return result;
} catch (const Json::exception&) {
  fail_damaged(log);
}

std::optional<int64_t> read_step(const std::filesystem::path& log) try {
  const Json event = last_event(log);
  return event.is_null() ? std::nullopt : number(event, "step");
} catch (const Json::exception&) {
  fail_damaged(log);
}

std::optional<Crossing> crossing(const RunResult& result, double score) {
  const auto after = std::ranges::find_if(result.curve, [&](const auto& point) { return point.score >= score; });
  if (after == result.curve.end()) return std::nullopt;
  const Crossing end = {static_cast<double>(after->step), after->seconds};
  if (after == result.curve.begin()) return end;
  const auto before = std::prev(after);
  const double left = (after->score - score) / (after->score - before->score);
  return Crossing{end.steps - left * static_cast<double>(after->step - before->step),
                  end.seconds - left * (after->seconds - before->seconds)};
}

void write_numbers(const std::filesystem::path& path, const RunResult& result) {
  for (const auto& [name, list] : result.numbers)
    check(std::ranges::all_of(list, [](double x) { return std::isfinite(x); }), path.string(), ": '", name,
          "' has NaN or infinite numbers");
  write_summed(path, {{"seconds", result.seconds}, {"numbers", result.numbers}, {"processor", result.processor}});
}

std::optional<RunResult> read_numbers(const std::filesystem::path& path) {
  const Json kept = read_summed(path);
  if (kept.is_null()) return std::nullopt;
  try {
    return RunResult{
        .seconds = kept.at("seconds"), .numbers = kept.at("numbers").get<Numbers>(), .processor = kept.at("processor")};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void keep_result(const std::filesystem::path& path, const Run& run, const RunResult& result) {
  Json kept = {{"run", command_of(run)},        {"score", result.score},     {"loss", result.loss},
               {"score_key", result.score_key}, {"seconds", result.seconds}, {"step_seconds", result.step_seconds},
               {"numbers", result.numbers},     {"curve", Json::array()},    {"scores", result.scores},
               {"processor", result.processor}};
  if (result.bytes_sent_payload) kept["bytes_sent_payload"] = *result.bytes_sent_payload;
  if (result.bytes_sent_overhead) kept["bytes_sent_overhead"] = *result.bytes_sent_overhead;
  if (result.time) kept["time"] = {result.time->compute, result.time->encode, result.time->wait, result.time->decode};
  for (const CurvePoint& point : result.curve)
    kept["curve"].push_back({point.step, point.seconds, point.score, point.loss, point.bytes_sent});
  write_summed(path, kept);
}

std::optional<RunResult> kept_result(const std::filesystem::path& path, const Run& run) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json kept = read_summed(path);
  check_input(!kept.is_null(), path.string(),
              ": is damaged, expected the kept result of a run; remove it to repeat it");
  try {
    const std::string found = kept.at("run"), expected = command_of(run);
    check_input(found == expected, path.string(), ": keeps the result of '", found, "', expected '", expected, "'");
    RunResult result = {.score = real(kept.at("score")),
                        .loss = real(kept.at("loss")),
                        .score_key = kept.at("score_key"),
                        .scores = kept.value("scores", std::map<std::string, double>()),
                        .seconds = kept.at("seconds"),
                        .bytes_sent_payload = number(kept, "bytes_sent_payload"),
                        .bytes_sent_overhead = number(kept, "bytes_sent_overhead"),
                        .step_seconds = kept.at("step_seconds"),
                        .numbers = kept.at("numbers").get<Numbers>(),
                        .processor = kept.value("processor", "")};  // docs/results has some that do not tell
    if (kept.contains("time")) {
      const Json& time = kept["time"];
      result.time = {.compute = time.at(0), .encode = time.at(1), .wait = time.at(2), .decode = time.at(3)};
    }
    for (const Json& point : kept.at("curve"))
      result.curve.push_back({.step = point.at(0),
                              .seconds = point.at(1),
                              .score = real(point.at(2)),
                              .loss = real(point.at(3)),
                              .bytes_sent = point.at(4)});
    return result;
  } catch (const Json::exception&) {
    fail_input(
        {path.string(), ": lacks parts of a kept result, expected all of this version; remove it to repeat the run"});
  }
}

bool counts_here(const Run& run, const RunResult& result) {
  return !run.measures_time || result.processor == trainer::processor_identity();
}

}  // namespace tern::reproduce
