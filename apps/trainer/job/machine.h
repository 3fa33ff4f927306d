#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/settings.h"

namespace tern::trainer {

/// "AMD EPYC 7763 64-Core Processor", as the system names it.
std::string processor_name();

/// tern and the libraries it computes with: {"tern", "0.1.0"}, {"onednn", "2.6.3"}, ...
std::vector<std::pair<std::string, std::string>> versions();

/// What --version prints.
std::string version_text(const std::string& application);

/// The most memory this process has had resident, bytes.
int64_t peak_memory_bytes();

/// Finds the device, tells its libraries what they may do, and sets the threads that compute in this thread's name;
/// `settings.threads` becomes their number, where none was given this process's share of the cores among `local_ranks`.
/// An InputError names the flag.
void prepare_machine(TrainSettings& settings, int local_ranks = 1);

}  // namespace tern::trainer
