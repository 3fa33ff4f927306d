#include "tern/core/program.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace tern {

namespace {

constexpr const char* kSelf = "/proc/self/exe";

}  // namespace

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(kSelf, error);
  // If the program's file was replaced while it runs, it exists only under /proc.
  return error || !std::filesystem::exists(path, error) ? kSelf : path.string();
}

std::string program_folder() {
  return std::filesystem::read_symlink(kSelf).parent_path();  // of a replaced file, only the name is marked as deleted
}

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

void wait_passively(int argc, char** argv) {
  // Some microseconds: a wait between two loops of a training step is usually shorter than putting a thread to sleep.
  constexpr const char* kSpins = "1000";
  if (argc < 1 || std::getenv("GOMP_SPINCOUNT")) return;
  if (setenv("OMP_WAIT_POLICY", "PASSIVE", 0) != 0 || setenv("GOMP_SPINCOUNT", kSpins, 0) != 0) return;
  execv(program_path().c_str(), argv);
}

}  // namespace tern
