#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tern/kernels/cuda/engine.h"

namespace tern::cuda {

/// The engines that timing has chosen, kept from run to run: a line "KEY: engine ..." each, in a file that processes
/// share. A file that cannot be read counts as empty, one that cannot be written is left: then they are timed anew.
/// Used by one thread at a time.
class EngineFile {
 public:
  explicit EngineFile(std::filesystem::path path);

  /// Null where `key` has none.
  const Engine* find(const std::string& key) const;
  /// Adds what `key` has to the file, and whatever other processes have added to this.
  void add(const std::string& key, const Engine& engine);

 private:
  void read();
  void write() const;

  std::filesystem::path path_;
  std::map<std::string, Engine> engines_;
};

/// Where `device`'s are kept: TERN_CACHE, else XDG_CACHE_HOME/tern, else ~/.cache/tern, in a file for each version of
/// cuDNN and each kind of device. "NVIDIA H200" and 91900 give "engines-NVIDIA_H200-cudnn-91900.txt".
std::filesystem::path engine_file_path(const std::string& device, size_t cudnn_version);

}  // namespace tern::cuda
