#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// One of cuDNN's engines for a graph, and how its knobs are set: what a plan is made from. A plain value.
struct Engine {
  int64_t index = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  ///< cudnnBackendKnobType_t, value

  friend bool operator==(const Engine&, const Engine&) = default;
};

/// "engine 17 2=1 14=0": the index, and each knob.
std::string to_string(const Engine& engine);
/// Nothing where `text` is not as `to_string` writes it.
std::optional<Engine> parse_engine(std::string_view text);

/// Calls `run`, which issues work into `stream`, and waits for the work. Returns the Error that `run` throws, or null:
/// an engine may lack memory for its workspace, or not run on this device. The error is cleared on the device. An error
/// that cannot be cleared, such as an illegal address, is thrown.
std::exception_ptr failure_of(cudaStream_t stream, const std::function<void()>& run);

/// The first of `count` candidates that runs; `run(i)` issues candidate i into `stream`. Where none runs, the last
/// one's error is thrown.
size_t first_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run);

/// The candidate that the device runs fastest, the first of equals, of those that run. Each runs up to thirteen times.
size_t fastest_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run);

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
