#include "tern/apps/trainer/program.h"

#include <filesystem>

namespace tern {

std::string program_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  const auto path = std::filesystem::read_symlink(kSelf, error);
  // A program that was replaced while it runs is still there under /proc alone.
  return error || !std::filesystem::exists(path, error) ? kSelf : path.string();
}

}  // namespace tern
