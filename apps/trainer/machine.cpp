#include "tern/apps/trainer/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <fstream>

#include "tern/kernels/libraries.h"

namespace tern {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  utsname system = {};
  uname(&system);
  return system.machine;
}

std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> found = {{"tern", TERN_VERSION}};
  for (auto& library : kernels::cpu_libraries()) found.push_back(std::move(library));
  for (auto& library : kernels::cuda_libraries()) found.push_back(std::move(library));
  return found;
}

std::string version_text(const std::string& application) {
  std::string text = application;
  for (const auto& [name, version] : versions()) text += (text == application ? ": " : ", ") + name + ' ' + version;
  return text + '\n';
}

int64_t peak_memory_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace tern
