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

/// One of cuDNN's engines for a graph and the values of its knobs: all that a plan needs. A plain value.
struct Engine {
  int64_t index = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  ///< cudnnBackendKnobType_t, value

  friend bool operator==(const Engine&, const Engine&) = default;
};

/// For example "engine 17 2=1 14=0": the index, and each knob with its value.
std::string to_string(const Engine& engine);
/// Parses the form that `to_string` writes. Returns nothing for any other text.
std::optional<Engine> parse_engine(std::string_view text);

/// Calls `issue` with the stream of `device`, and waits for the work. Returns the Error that `issue` throws, or null if
/// it throws none: an engine may lack memory for its workspace, or may not run on this device. Clears the error on the
/// device. If the error cannot be cleared, such as an illegal address, throws it.
std::exception_ptr failure_of(Device device, const std::function<void(cudaStream_t)>& issue);

/// Issues candidate i into a stream of the device.
using IssueCandidate = std::function<void(size_t i, cudaStream_t stream)>;

/// The first of `count` candidates that runs. If none runs, throws the error of the last one.
size_t first_of(size_t count, Device device, const IssueCandidate& issue);

/// The candidate that takes the device least time (see GraphTimer); the first of them if several are equal. Candidates
/// that cannot be recorded are taken only if none can. They are measured one after another: the memory that one uses
/// must live until another is issued. If none runs, throws the error of the last one. Each candidate is also issued
/// into a stream of its own. Calls `leave`, which must not throw, before it destroys this stream, also after an error.
size_t fastest_of(size_t count, Device device, const IssueCandidate& issue, const std::function<void()>& leave);

/// The engines that timing has chosen, kept in a file that processes share, one line "KEY: engine ..." each. If the
/// file cannot be read, it counts as empty. If it cannot be written, the engines are timed again in the next run. Used
/// by one thread at a time.
class EngineFile {
 public:
  explicit EngineFile(std::filesystem::path path);

  /// Returns null if `key` has no engine.
  const Engine* find(const std::string& key) const;
  /// Adds the engine of `key` to the file. Also reads the engines that other processes have added.
  void add(const std::string& key, const Engine& engine);

 private:
  void read();
  void write() const;

  std::filesystem::path path_;
  std::map<std::string, Engine> engines_;
};

/// The file for the engines of `device`, one for each kind of device, each version of cuDNN and each version of CUDA
/// that the driver gives (cudaDriverGetVersion). The folder is TERN_CACHE, or XDG_CACHE_HOME/tern, or ~/.cache/tern,
/// the first of these whose variable is set. If none is set, it is the current folder. "NVIDIA H200", 91900 and 13000
/// give "engines-NVIDIA_H200-cudnn-91900-driver-13000.txt".
std::filesystem::path engine_file_path(const std::string& device, size_t cudnn_version, int driver_version);

}  // namespace tern::cuda
