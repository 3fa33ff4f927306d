#include "tern/apps/reproduce/engine/run_folder.h"

#include <fstream>

#include "tern/apps/reproduce/engine/run_files.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/core/error.h"
#include "tern/core/program.h"
#include "tern/core/stopwatch.h"
#include "tern/optim/checkpoint.h"
#include "tern/trainer/job/program.h"
#include "tern/trainer/rank/machine.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

std::filesystem::path program_file(const std::string& name) { return std::filesystem::path(program_folder()) / name; }

}  // namespace

RunFolder::RunFolder(std::filesystem::path path, const Run& run) : path_(std::move(path)), run_(run) {
  if (!std::filesystem::exists(log()) && !std::filesystem::exists(numbers())) return;
  std::ifstream file(flags_file());
  std::string found;
  if (!std::getline(file, found)) return;
  const std::string expected = shell_command(run_.flags);
  check_input(found == expected, path_.string(), ": holds a run with ", found, ", expected ", expected,
              "; --out DIR names another place");
}

std::optional<RunResult> RunFolder::result() const {
  return run_.is_study() ? read_numbers(numbers()) : read_result(log());
}

std::vector<std::string> RunFolder::command() const {
  std::vector<std::string> words = {program_file(run_.program)};
  words.insert(words.end(), run_.flags.begin(), run_.flags.end());
  words.insert(words.end(), run_.places.begin(), run_.places.end());
  words.insert(words.end(), {"--log", log(), "--checkpoint", checkpoints(), "--checkpoint-every",
                             std::to_string(run_.checkpoint_every)});
  words.push_back("--quiet");
  return words;
}

std::vector<std::string> RunFolder::prepare() const {
  write_flags();
  std::vector<std::string> words = command();
  check_input(std::filesystem::exists(words[0]), words[0], ": no such program, expected one beside reproduce");
  if (std::filesystem::exists(checkpoints()) && latest_checkpoint(checkpoints())) words.push_back("--resume");
  return words;
}

void RunFolder::write_flags() const {
  std::filesystem::create_directories(path_);
  write_text(flags_file(), shell_command(run_.flags) + '\n');
}

void RunFolder::study(const StudyProgress& progress) const {
  write_flags();
  make_room();
  RunResult result = {.processor = processor_identity()};
  {
    const Stopwatch watch(result.seconds);
    result.numbers = run_.study(progress);
  }
  write_numbers(numbers(), result);
}

void RunFolder::make_room() const {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(numbers(), error).type();
  if (type == std::filesystem::file_type::not_found || std::filesystem::is_regular_file(numbers(), error)) return;
  std::filesystem::remove(numbers(), error);
  check_input(!error, numbers().string(), ": is not a file, and cannot be removed: ", error.message());
}

void RunFolder::tidy() const { std::filesystem::remove_all(checkpoints()); }

std::string RunFolder::last_words() const {
  std::ifstream file(output());
  std::string last = "nothing";
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace tern::reproduce
