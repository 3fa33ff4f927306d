#include "tern/apps/trainer/places.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "tern/apps/trainer/run_checkpoint.h"
#include "tern/core/atomic_file.h"
#include "tern/core/error.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

void check_file(const char* flag, const std::string& path) {
  if (path.empty()) return;
  try {
    check_writable(path);
  } catch (const InputError& error) {
    throw InputError(join({flag, ": ", error.what()}));
  }
}

/// The folder, or the nearest above it that exists, must take new files.
void check_folder(const char* flag, const std::string& path) {
  if (path.empty()) return;
  fs::path nearest = fs::absolute(path);
  while (!fs::exists(nearest)) nearest = nearest.parent_path();
  check_input(fs::is_directory(nearest), flag, ": ", path, ": ", nearest.string(), " is not a folder");
  check_input(access(nearest.c_str(), W_OK | X_OK) == 0, flag, ": ", path, ": ", nearest.string(),
              " cannot be written");
}

/// Two outputs in one place would destroy one another.
void check_distinct(const TrainSettings& s) {
  const std::pair<const char*, const std::string*> places[] = {{"--log", &s.log},
                                                               {"--plot", &s.plot},
                                                               {"--save", &s.save},
                                                               {"--tensorboard", &s.tensorboard},
                                                               {"--checkpoint", &s.checkpoint}};
  std::map<fs::path, const char*> taken;
  for (const auto& [flag, path] : places) {
    if (path->empty()) continue;
    const auto [place, is_new] = taken.emplace(fs::weakly_canonical(*path), flag);
    check_input(is_new, place->second, " and ", flag, ": both name ", *path, ", expected a place for each");
  }
}

}  // namespace

void check_places(const TrainSettings& s) {
  check_distinct(s);
  check_file("--log", s.log);
  check_file("--plot", s.plot);
  check_file("--save", s.save);
  check_folder("--tensorboard", s.tensorboard);
  const bool trains = !s.eval_only && s.predict.empty();
  if (trains) check_folder("--checkpoint", s.checkpoint);
  if (trains && !s.resume && !s.checkpoint.empty()) check_no_run(s.checkpoint);
  check_input(s.init.empty() || std::ifstream(s.init).good(), "--init: ", s.init, ": no such file, or not readable");
}

}  // namespace tern
