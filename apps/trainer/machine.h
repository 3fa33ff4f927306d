#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tern {

/// "AMD EPYC 7763 64-Core Processor", as the system names it.
std::string processor_name();

/// tern and the libraries it computes with: {"tern", "0.1.0"}, {"onednn", "2.6.3"}, ...
std::vector<std::pair<std::string, std::string>> versions();

/// What --version prints.
std::string version_text(const std::string& application);

/// The most memory this process has had resident, bytes.
int64_t peak_memory_bytes();

}  // namespace tern
