#include "tern/apps/trainer/places.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "tern/apps/trainer/run_checkpoint.h"
#include "tern/core/atomic_file.h"
#include "tern/core/error.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

/// `check` is check_writable or check_writable_folder.
void check_place(const char* flag, const std::string& path, void (*check)(const fs::path&)) {
  if (path.empty()) return;
  try {
    check(path);
  } catch (const InputError& error) {
    throw InputError(join({flag, ": ", error.what()}));
  }
}

/// Two outputs in one place would destroy one another.
void check_distinct(const TrainSettings& s) {
  const std::pair<const char*, const std::string*> places[] = {{"--log", &s.log},
                                                               {"--plot", &s.plot},
                                                               {"--save", &s.save},
                                                               {"--tensorboard", &s.tensorboard},
                                                               {"--checkpoint", &s.checkpoint},
                                                               {"--cache", &s.cache}};
  std::map<fs::path, const char*> taken;
  if (!s.init.empty() && s.init != s.save) taken.emplace(fs::weakly_canonical(fs::absolute(s.init)), "--init");
  for (const auto& [flag, path] : places) {
    if (path->empty()) continue;
    const auto [place, is_new] = taken.emplace(fs::weakly_canonical(fs::absolute(*path)), flag);
    check_input(is_new, place->second, " and ", flag, ": both name ", *path, ", expected a place for each");
  }
}

}  // namespace

void check_places(const TrainSettings& s) {
  check_place("--log", s.log, check_writable);
  check_place("--plot", s.plot, check_writable);
  check_place("--save", s.save, check_writable);
  check_place("--tensorboard", s.tensorboard, check_writable_folder);
  check_place("--cache", s.cache, check_writable_folder);
  const bool trains = !s.eval_only && s.predict.empty();
  if (trains) check_place("--checkpoint", s.checkpoint, check_writable_folder);
  check_distinct(s);
  if (trains && !s.resume && !s.checkpoint.empty()) check_no_run(s.checkpoint);
  check_input(s.init.empty() || std::ifstream(s.init).good(), "--init: ", s.init, ": no such file, or not readable");
}

}  // namespace tern
