#include "tern/trainer/rank/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/kernels/libraries.h"

namespace tern::trainer {

namespace {

/// The first core's lines of /proc/cpuinfo. The file is long if there are many cores.
std::string read_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  std::string lines;
  for (std::string line; std::getline(file, line) && !line.empty();) lines += line + '\n';
  return lines;
}

/// What `cpuinfo` says about the first core; nullopt if it does not have the key.
std::optional<std::string> core_value(const std::string& cpuinfo, std::string_view key) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':'), end = line.find_last_not_of(" \t", colon - 1);
    if (colon != std::string::npos && std::string_view(line).substr(0, end + 1) == key)
      return line.substr(std::min(line.size(), colon + 2));
  }
  return std::nullopt;
}

std::string name_in(const std::string& cpuinfo) {
  if (const auto name = core_value(cpuinfo, "model name")) return *name;
  utsname system = {};
  uname(&system);
  return system.machine;
}

}  // namespace

std::string processor_name() { return name_in(read_cpuinfo()); }

std::string processor_identity(const std::string& cpuinfo) {
  std::string text = name_in(cpuinfo);
  // Arm's processors have the last two instead of a name.
  for (const char* key : {"cpu family", "model", "CPU implementer", "CPU part"})
    if (const auto value = core_value(cpuinfo, key)) text += join({", ", key, " ", *value});
  return text;
}

std::string processor_identity() { return processor_identity(read_cpuinfo()); }

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

void prepare_machine(TrainSettings& settings, int local_ranks) {
  try {
    const Device device = parse_device(settings.device);
    device_backend(device);
    kernels::set_library_rules(device, {.tf32 = settings.precision == Precision::tf32,
                                        .deterministic = settings.deterministic,
                                        .direct_convolutions = settings.convolution == ConvolutionChoice::direct});
  } catch (const InputError& error) {
    throw InputError(std::string("--device: ") + error.what());
  }
  if (settings.threads == 0) settings.threads = std::max(1, thread_count() / local_ranks);
  set_thread_count(static_cast<int>(settings.threads));
}

}  // namespace tern::trainer
