#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/settings.h"

namespace tern::trainer {

/// The name of the processor as the system reports it: "AMD EPYC 7763 64-Core Processor".
std::string processor_name();
/// The same with the numbers of its kind, because virtual machines give many kinds one name: "AMD EPYC, cpu
/// family 25, model 17". An Arm processor has no name: "aarch64, CPU implementer 0x41, CPU part 0xd0c".
std::string processor_identity();
/// The same of a machine whose /proc/cpuinfo has this text.
std::string processor_identity(const std::string& cpuinfo);

/// The versions of tern and of the libraries that it uses: {"tern", "0.1.0"}, {"onednn", "2.6.3"}, ...
std::vector<std::pair<std::string, std::string>> versions();

/// The text of --version.
std::string version_text(const std::string& application);

/// Largest resident memory of this process so far, in bytes.
int64_t peak_memory_bytes();

/// Finds the device, configures its libraries, and sets the number of threads that compute for this thread. If
/// `settings.threads` is 0, sets it to this process's share of the cores among `local_ranks`. Throws InputError with
/// the flag.
void prepare_machine(TrainSettings& settings, int local_ranks = 1);

}  // namespace tern::trainer
