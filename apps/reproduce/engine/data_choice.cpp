#include "tern/apps/reproduce/engine/data_choice.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/trainer/data/datasets.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

bool needs_folder(const std::string& name) { return find_dataset({.data = name}).needs_folder; }

/// ", or, to try it, --data digits", if one of `names` needs no files; else empty.
std::string drawn_instead(const std::vector<std::string>& names) {
  const auto drawn = std::ranges::find_if_not(names, needs_folder);
  return drawn == names.end() ? "" : ", or, to try it, --data " + *drawn;
}

}  // namespace

std::vector<std::string> DataChoice::places() const {
  return folder.empty() ? std::vector<std::string>{} : std::vector<std::string>{"--data-dir", folder};
}

DataChoice choose_data(const char* experiment, const ExperimentOptions& options,
                       const std::vector<std::string>& allowed) {
  const std::string name = options.data.empty() ? allowed.front() : options.data;
  std::string words;
  for (const auto& word : allowed) words += (words.empty() ? "" : "|") + word;
  check_input(std::ranges::find(allowed, name) != allowed.end(), "--data: found '", name, "', expected ", words);
  check_input(!needs_folder(name) || !options.data_dir.empty(), experiment, " needs --data-dir DIR with the files of ",
              name, drawn_instead(allowed));
  check_input(needs_folder(name) || options.data_dir.empty(), "--data-dir would change nothing: --data ", name,
              " reads no files");
  return {.name = name, .folder = options.data_dir};
}

void check_trains_nothing(const char* experiment, const ExperimentOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--data", !options.data.empty()},
                                                {"--data-dir", !options.data_dir.empty()},
                                                {"--iterations", options.iterations.has_value()},
                                                {"--seeds", options.seeds.has_value()},
                                                {"--workers", !options.workers.empty()}};
  for (const auto& [flag, found] : given)
    check_input(!found, flag, " would change nothing: ", experiment, " trains no network");
}

}  // namespace tern::reproduce
