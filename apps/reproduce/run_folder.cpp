#include "tern/apps/reproduce/run_folder.h"

#include <fstream>

#include "tern/apps/reproduce/run_log.h"
#include "tern/apps/reproduce/shell.h"
#include "tern/apps/reproduce/text_file.h"
#include "tern/apps/trainer/program.h"
#include "tern/core/error.h"
#include "tern/optim/checkpoint.h"

namespace tern {
namespace {

/// Steps: some seconds to a minute of work, by the number of workers.
constexpr const char* kCheckpointEvery = "500";

std::filesystem::path program_file(const std::string& name) {
  return std::filesystem::path(program_path()).parent_path() / name;
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path path, const Run& run) : path_(std::move(path)), run_(run) {
  std::ifstream file(flags_file());
  std::string found;
  if (!std::getline(file, found)) return;
  const std::string expected = shell_command(run_.flags);
  check_input(found == expected, path_.string(), ": holds a run with ", found, ", expected ", expected,
              "; --out DIR names another place");
}

std::optional<RunResult> RunFolder::result() const { return read_result(log()); }

std::vector<std::string> RunFolder::command() const {
  std::vector<std::string> words = {program_file(run_.program)};
  words.insert(words.end(), run_.flags.begin(), run_.flags.end());
  words.insert(words.end(), run_.places.begin(), run_.places.end());
  words.insert(words.end(), {"--log", log(), "--checkpoint", checkpoints(), "--checkpoint-every", kCheckpointEvery});
  words.push_back("--quiet");
  return words;
}

std::vector<std::string> RunFolder::prepare() const {
  std::filesystem::create_directories(path_);
  write_text(flags_file(), shell_command(run_.flags) + '\n');
  std::vector<std::string> words = command();
  check_input(std::filesystem::exists(words[0]), words[0], ": no such program; expected beside ", program_path());
  if (std::filesystem::exists(checkpoints()) && latest_checkpoint(checkpoints())) words.push_back("--resume");
  return words;
}

void RunFolder::tidy() const { std::filesystem::remove_all(checkpoints()); }

std::string RunFolder::last_words() const {
  std::ifstream file(output());
  std::string last = "nothing";
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace tern
