#include "tern/apps/reproduce/engine/result_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/trainer/rank/machine.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

std::string machine_text(const std::string& device) {
  std::string text = fmt::format("{}, {} cores", processor_name(), std::thread::hardware_concurrency());
  if (device != "cpu") text += " and " + device;
  for (const auto& [name, version] : versions()) text += fmt::format(", {} {}", name, version);
  return text;
}

std::string optional_text(const std::optional<int64_t>& number) { return number ? std::to_string(*number) : ""; }

/// The commands of the training runs.
std::string commands_text(const std::vector<RunFolder>& folders) {
  std::string commands;
  for (const RunFolder& folder : folders)
    if (!folder.holds_study()) commands += shell_command(folder.command()) + '\n';
  return commands.empty() ? "" : "\nIt runs\n\n```sh\n" + commands + "```\n";
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 60 * kMinute;
  if (seconds < 1.5 * kMinute) return fmt::format("{:.2g} s", seconds);
  return seconds < 1.5 * kHour ? fmt::format("{:.0f} min", seconds / kMinute)
                               : fmt::format("{:.1f} h", seconds / kHour);
}

/// Whether the finished run's files are here. Otherwise its numbers were kept, and may be another machine's.
bool ran_here(const RunFolder& folder, const Results& results) {
  return results.contains(folder.path().filename()) &&
         (std::filesystem::exists(folder.log()) || std::filesystem::exists(folder.numbers()));
}

/// The machines of the finished runs.
std::string machines_text(const std::string& device, const std::vector<RunFolder>& folders, const Results& results) {
  std::set<std::string> machines;
  for (const RunFolder& folder : folders) {
    const auto found = results.find(folder.path().filename());
    if (found == results.end()) continue;
    const std::string& processor = found->second.processor;
    const bool here = processor.empty() ? ran_here(folder, results) : processor == processor_identity();
    machines.insert(here ? machine_text(device) : processor.empty() ? "an unknown processor" : processor);
  }
  return fmt::format("{}", fmt::join(machines, "; "));
}

/// The files of finished runs, as text; empty if none is here.
std::string files_text(const std::vector<RunFolder>& folders, const Results& results) {
  int64_t studies = 0, here = 0;
  for (const RunFolder& folder : folders) {
    if (!ran_here(folder, results)) continue;
    ++here;
    studies += folder.holds_study() ? 1 : 0;
  }
  if (here == 0) return "";
  const char* const kind = studies == 0 ? "logs" : studies == here ? "numbers" : "logs and numbers";
  if (here == std::ssize(results)) return fmt::format("; `runs/` has their {}", kind);
  return fmt::format("; `runs/` has the {} of those that ran here", kind);
}

/// The names of all columns, in the order of their first appearance.
std::vector<std::string> column_names(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs)
    for (const auto& [name, value] : run.columns)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string column_value(const Run& run, const std::string& name) {
  const auto column = std::ranges::find(run.columns, name, &std::pair<std::string, std::string>::first);
  return column == run.columns.end() ? "" : column->second;
}

/// A cell of a CSV file, in quotes if it needs them (RFC 4180).
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string result_page(const ExperimentEntry& entry, const ReproduceCommand& command,
                        const std::vector<RunFolder>& folders, const Results& results, const Report& report) {
  double seconds = 0;
  for (const auto& [name, result] : results) seconds += result.seconds;
  std::string text = fmt::format("# {}\n\n", report.title.empty() ? entry.title : report.title);
  if (results.size() < folders.size())
    text += fmt::format("**Done: {} of {}**; the command below goes on.\n\n", results.size(), folders.size());
  for (const auto& [name, svg] : report.figures) text += fmt::format("![{0}]({0})\n\n", name);
  text += report.text;
  if (report.text.find(" ± ") != std::string::npos) text += "\nA number after ± is a standard error.\n";
  std::string tables;
  for (const auto& [name, csv] : report.tables)
    tables += fmt::format("{1}[{0}]({0})", name, tables.empty() ? "" : ", ");
  if (folders.empty()) return text + fmt::format("\nAll numbers: {}, by\n\n```sh\n{}\n```\n", tables, command.line);
  text += "\n## Runs\n\n";
  if (!results.empty())
    text += fmt::format("{} of work on {}, without evaluations. ", duration_text(seconds),
                        machines_text(command.options.device, folders, results));
  text +=
      fmt::format("Every run is a line of [runs.csv](runs.csv){}.{}\n\n```sh\n{}\n```\n", files_text(folders, results),
                  tables.empty() ? "" : " More numbers: " + tables + ".", command.line);
  return text + commands_text(folders);
}

std::string runs_csv(const std::vector<Run>& runs, const Results& results) {
  const std::vector<std::string> names = column_names(runs);
  std::string text = "run";
  for (const auto& name : names) text += ',' + csv_cell(name);
  const std::string score = results.empty() ? RunResult().score_key : results.begin()->second.score_key;
  text += ",steps," + score + ",loss,seconds,bytes_sent_payload,bytes_sent_overhead\n";
  for (const Run& run : runs) {
    text += run.name;
    for (const auto& name : names) text += ',' + csv_cell(column_value(run, name));
    text += ',' + std::to_string(run.steps);
    const auto found = results.find(run.name);
    if (found == results.end()) {
      text += ",,,,,\n";
      continue;
    }
    const RunResult& result = found->second;
    if (run.is_study()) {
      text += fmt::format(",,,{},,\n", result.seconds);
      continue;
    }
    text += fmt::format(",{},{},{},{},{}\n", result.score, result.loss, result.seconds,
                        optional_text(result.bytes_sent_payload), optional_text(result.bytes_sent_overhead));
  }
  return text;
}

}  // namespace tern::reproduce
