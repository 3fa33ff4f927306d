#include "tern/apps/reproduce/result_page.h"

#include <fmt/format.h>

#include <thread>

#include "tern/apps/reproduce/shell.h"
#include "tern/apps/trainer/machine.h"

namespace tern {
namespace {

std::string machine_text() {
  std::string text = fmt::format("{}, {} cores", processor_name(), std::thread::hardware_concurrency());
  for (const auto& [name, version] : versions()) text += fmt::format(", {} {}", name, version);
  return text;
}

std::string optional_text(const std::optional<int64_t>& number) { return number ? std::to_string(*number) : ""; }

}  // namespace

std::string result_page(const ExperimentEntry& entry, const std::string& command, const std::vector<RunFolder>& folders,
                        const Results& results, const Report& report) {
  double seconds = 0;
  for (const auto& [name, result] : results) seconds += result.seconds;
  std::string text = fmt::format("# {}\n\n", entry.title);
  if (results.size() < folders.size())
    text += fmt::format("**{} of {} runs are done**; the command below goes on.\n\n", results.size(), folders.size());
  for (const auto& [name, svg] : report.figures) text += fmt::format("![{0}]({0})\n\n", name);
  text += report.text;
  text += fmt::format(
      "\n## Runs\n\n{:.0f} minutes of training on {}. Every run is a line of [runs.csv](runs.csv); `runs/` "
      "has their logs.\n\n```sh\n{}\n```\n\nwhich runs\n\n```sh\n",
      seconds / 60, machine_text(), command);
  for (const RunFolder& folder : folders) text += shell_command(folder.command()) + '\n';
  return text + "```\n";
}

std::string runs_csv(const std::vector<Run>& runs, const Results& results) {
  std::string text = "run";
  for (const auto& [column, value] : runs.front().columns) text += ',' + column;
  text += ",steps,accuracy,loss,seconds,bytes_sent_payload,bytes_sent_overhead\n";
  for (const Run& run : runs) {
    text += run.name;
    for (const auto& [column, value] : run.columns) text += ',' + value;
    text += ',' + std::to_string(run.steps);
    const auto found = results.find(run.name);
    if (found == results.end()) {
      text += ",,,,,\n";
      continue;
    }
    const RunResult& result = found->second;
    text += fmt::format(",{},{},{},{},{}\n", result.accuracy, result.loss, result.seconds,
                        optional_text(result.bytes_sent_payload), optional_text(result.bytes_sent_overhead));
  }
  return text;
}

}  // namespace tern
