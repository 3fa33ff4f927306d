#include "tern/apps/reproduce/engine/reproduction.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tern/apps/reproduce/engine/child_program.h"
#include "tern/apps/reproduce/engine/result_page.h"
#include "tern/apps/reproduce/engine/run_files.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/core/error.h"
#include "tern/dist/comm/launch.h"
#include "tern/trainer/application.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

std::string count_text(size_t runs) { return fmt::format("{} run{}", runs, runs == 1 ? "" : "s"); }

std::unique_ptr<Experiment> make(const ExperimentEntry& entry, const ExperimentOptions& options) {
  check_input(entry.takes_steps || options.steps.empty(), "--steps would change nothing: ", entry.name,
              " is not computed from training steps");
  check_input(options.data_dir.empty() || std::filesystem::exists(options.data_dir), "--data-dir: ", options.data_dir,
              ": no such file or folder");
  check_input(entry.takes_swift || !options.swift, "--swift would change nothing: ", entry.name, " has no such form");
  return entry.make(options);
}

/// The runs of `experiment` on the chosen device.
std::vector<Run> runs_of(const Experiment& experiment, const ReproduceCommand& command) {
  std::vector<Run> runs = experiment.runs();
  const std::string& device = command.options.device;
  if (device == "cpu") return runs;
  check_input(!runs.empty() && std::ranges::none_of(runs, &Run::is_study), "--device: found ", device,
              ", expected cpu: ", command.name, " computes in this process");
  for (Run& run : runs) run.flags.insert(run.flags.end(), {"--device", device});
  return runs;
}

/// With a launcher's variables, the training programs would wait for its other ranks.
void check_no_launcher() {
  if (const auto place = find_place(); place && place->size > 1)
    fail_input({"environment: found rank ", place->rank, " of ", place->size, " from ", place->source,
                ", expected none, because reproduce starts all ranks of its runs itself"});
}

}  // namespace

Reproduction::Reproduction(const ExperimentEntry& entry, const ReproduceCommand& command, Console& console)
    : entry_(entry),
      command_(command),
      console_(console),
      experiment_(make(entry, command.options)),
      runs_(runs_of(*experiment_, command)),
      folder_(command.folder) {
  check_no_launcher();
  lock();
  if (!command_.kept.empty()) {
    std::error_code error;
    std::filesystem::create_directories(command_.kept, error);
    check_input(!error || std::filesystem::is_directory(command_.kept), "--kept: ", command_.kept,
                ": no folder can be made there: ", error.message());
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    folders_.emplace_back(folder_ / "runs" / runs_[i].name, runs_[i]);
    const auto result = folders_[i].result();
    const auto kept = command_.kept.empty() ? std::nullopt : kept_result(kept_file(i), runs_[i]);
    if (result && counts_here(runs_[i], *result)) {
      results_[runs_[i].name] = *result;
      keep(i);
    } else if (kept && counts_here(runs_[i], *kept)) {
      results_[runs_[i].name] = *kept;
    } else {
      elsewhere_ += result || kept;
    }
  }
}

std::filesystem::path Reproduction::kept_file(size_t number) const {
  return std::filesystem::path(command_.kept) / (runs_[number].name + ".json");
}

void Reproduction::keep(size_t number) const {
  if (command_.kept.empty()) return;
  kept_result(kept_file(number), runs_[number]);  // throws if the file keeps a run with other flags
  keep_result(kept_file(number), runs_[number], results_.at(runs_[number].name));
}

Reproduction::~Reproduction() { ::close(lock_); }

void Reproduction::lock() {
  const std::string path = folder_ / "lock";
  check_input(
      !std::filesystem::is_directory(folder_) || std::filesystem::is_empty(folder_) || std::filesystem::exists(path),
      "--out: ", folder_.string(), " holds other files, expected an empty folder or one of ", entry_.name);
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  check_input(!error, "--out: ", folder_.string(), ": no folder can be made there: ", error.message());
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check_input(lock_ >= 0, path, ": cannot be written: ", std::strerror(errno));
  check_input(::flock(lock_, LOCK_EX | LOCK_NB) == 0, "--out: ", folder_.string(),
              " is in use by another reproduce, expected a folder that is free");
  std::string owner;
  std::getline(std::ifstream(path), owner);
  check_input(owner.empty() || owner == entry_.name, "--out: ", folder_.string(), " holds ", owner,
              ", expected an empty folder or one of ", entry_.name);
  std::ofstream(path) << entry_.name << '\n';
}

void Reproduction::run() {
  const std::string page = (folder_ / "README.md").string();
  say(runs_.empty() ? fmt::format("{}: see {}", entry_.name, page)
                    : fmt::format("{}: {}, {} done before; see {}", entry_.name, count_text(runs_.size()),
                                  results_.size(), page));
  if (elsewhere_ > 0)
    say(fmt::format("of these, {} measured time on another or an unknown processor: repeated here, in place of the old",
                    count_text(elsewhere_)));
  write();
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (results_.contains(runs_[i].name)) continue;
    runs_[i].is_study() ? compute(i) : train(i);
    write();
  }
  std::string text = experiment_->report(results_).text;
  if (text.ends_with('\n')) text.pop_back();
  console_.out.print(text);
}

/// Shows a line on a terminal; the next line replaces it.
void Reproduction::show(const std::string& line) {
  if (console_.err.is_terminal()) console_.err.show("\r\033[K" + line);
}

void Reproduction::say(const std::string& line) {
  show("");
  console_.err.print(line);
}

std::string Reproduction::title(size_t number) const {
  return fmt::format("[{}/{}] {}", number + 1, runs_.size(), runs_[number].name);
}

void Reproduction::compute(size_t number) {
  const Run& run = runs_[number];
  folders_[number].study([&](int64_t step) {
    if (interrupt_.interrupted())
      throw Interrupted(join({"interrupted in ", title(number), "; the same command begins it anew"}));
    show(fmt::format("{}: step {} of {}", title(number), step, run.steps));
  });
  results_[run.name] = folders_[number].result().value();
  keep(number);
  say(fmt::format("{}: {:.0f} s", title(number), results_[run.name].seconds));
}

void Reproduction::train(size_t number) {
  const Run& run = runs_[number];
  const RunFolder& folder = folders_[number];
  ChildProgram child(folder.prepare(), folder.output());
  bool told = false;
  std::optional<int> code;
  while (!(code = child.wait(std::chrono::milliseconds(200)))) {
    if (interrupt_.interrupted() && !told) child.send(SIGINT);
    told = interrupt_.interrupted();
    show(fmt::format("{}: step {} of {}", title(number), read_step(folder.log()).value_or(0), run.steps));
  }
  const auto result = *code == kDone ? folder.result() : std::nullopt;
  if (result) {
    results_[run.name] = *result;
    keep(number);
    folder.tidy();
    say(fmt::format("{}: {:.2f} %, {:.0f} s", title(number), 100 * result->score, result->seconds));
  }
  if (interrupt_.interrupted() || *code == kInterrupted)
    throw Interrupted(join({"interrupted in ", title(number), "; the same command goes on from there"}));
  if (!result) {
    const std::string sentence =
        join({run.name, " ended with code ", *code, ": ", folder.last_words(), " (", folder.output().string(), ")"});
    check_input(*code != kBadInput, sentence);
    throw Error(sentence);
  }
}

void Reproduction::write() const {
  const Report report = experiment_->report(results_);
  write_text(folder_ / "README.md", result_page(entry_, command_, folders_, results_, report));
  if (!runs_.empty()) write_text(folder_ / "runs.csv", runs_csv(runs_, results_));
  for (const auto& files : {report.figures, report.tables})
    for (const auto& [name, text] : files) write_text(folder_ / name, text);
}

}  // namespace tern::reproduce
