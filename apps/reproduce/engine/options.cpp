#include "tern/apps/reproduce/engine/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/rank/machine.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

void check_options(const ExperimentOptions& options) {
  check_input(!options.quick || !options.swift,
              "--quick and --swift exclude each other: both change the length of runs");
  try {
    parse_device(options.device);
  } catch (const InputError& error) {
    throw InputError(join({"--device: ", error.what()}));
  }
  for (const int64_t workers : options.workers)
    check_input(workers <= kMaxRanks, "--workers: found ", workers, ", expected at most ", kMaxRanks);
  check_input(options.iterations.value_or(1) >= 1, "--iterations: found ", options.iterations.value_or(0),
              ", expected 1 or more");
  check_input(options.seeds.value_or(1) >= 1, "--seeds: found ", options.seeds.value_or(0), ", expected 1 or more");
}

}  // namespace

ReproduceCommand read_command(int argc, const char* const* argv) {
  ReproduceCommand command;
  command.line = shell_command({argv, argv + argc});
  ExperimentOptions& options = command.options;
  CLI::App app(
      "Repeats a table or figure of a paper: many runs of tern's programs, and a page that compares them with "
      "what was published. If you stop it, the same command continues the table.",
      "reproduce");
  app.add_option("NAME", command.name, "Table or figure; `reproduce list` names them all")->required()->type_name("");
  add_value_option(app, "--data-dir", "DIR", options.data_dir, "Folder with the data set's files");
  add_value_option(app, "--data", "NAME", options.data,
                   "Another data set than the paper's, to try it: digits, shapes and tones need no files");
  add_value_option(app, "--device", "NAME", options.device,
                   "Device of the training programs, if `reproduce list` says so: cpu, cuda or cuda:N [cpu]");
  app.add_flag("--quick", options.quick, "A short form, which takes minutes");
  app.add_flag("--swift", options.swift,
               "A form that takes hours on two cores: runs use their program's --recipe swift");
  add_value_option(app, "--out", "DIR", command.folder,
                   "Folder of the results [results/NAME, with --quick results/NAME-quick, with --swift "
                   "results/NAME-swift]");
  add_value_option(app, "--kept", "DIR", command.kept,
                   "Folder of small files, one for each finished run. A run that has one is not repeated, so you can "
                   "continue a table on another machine, without its other files");
  add_value_option(
      app, "--iterations", "N", options.iterations,
      "Training steps of each run, instead of the paper's. If groups of runs have different lengths, N is the first "
      "group's, and the others keep their share");
  add_value_option(app, "--seeds", "N", options.seeds,
                   "Runs that differ only in their random numbers; rows that take hours keep one");
  add_value_option(app, "--workers", "N,N,...", options.workers, "Numbers of workers");
  add_value_option(app, "--steps", "FILE", options.steps,
                   "terngrad-fig5: training steps that tests/gpu/steps measured, in place of published ones");
  if (const auto text = parse_words(app, argc, argv, version_text("reproduce"))) {
    command.text = *text;
    return command;
  }
  const char* form = options.quick ? "-quick" : options.swift ? "-swift" : "";
  if (command.folder.empty()) command.folder = "results/" + command.name + form;
  check_options(options);
  return command;
}

}  // namespace tern::reproduce
