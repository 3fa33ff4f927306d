#include "tern/kernels/cuda/engine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <vector>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/kernels/cuda/graph_timer.h"

namespace tern::cuda {
namespace {

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take(std::string_view& text, int64_t& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

std::filesystem::path cache_folder() {
  const auto folder = [](const char* variable, const char* below) -> std::filesystem::path {
    const char* value = std::getenv(variable);
    return value == nullptr || *value == '\0' ? "" : std::filesystem::path(value) / below;
  };
  for (const auto& path : {folder("TERN_CACHE", ""), folder("XDG_CACHE_HOME", "tern"), folder("HOME", ".cache/tern")})
    if (!path.empty()) return path;
  return {};
}

}  // namespace

std::string to_string(const Engine& engine) {
  std::string text = "engine " + std::to_string(engine.index);
  for (const auto& [knob, value] : engine.knobs) text += ' ' + std::to_string(knob) + '=' + std::to_string(value);
  return text;
}

std::optional<Engine> parse_engine(std::string_view text) {
  Engine engine;
  if (!take(text, "engine ") || !take(text, engine.index)) return {};
  while (!text.empty()) {
    auto& [knob, value] = engine.knobs.emplace_back();
    if (!take(text, " ") || !take(text, knob) || !take(text, "=") || !take(text, value)) return {};
  }
  return engine;
}

std::exception_ptr failure_of(Device device, const std::function<void(cudaStream_t)>& issue) {
  const cudaStream_t stream = enter(device);
  std::exception_ptr failure;
  try {
    issue(stream);
  } catch (const Error&) {
    failure = std::current_exception();
    cudaGetLastError();  // otherwise the library of the next engine takes the error for its own
  }
  check_cuda(cudaStreamSynchronize(stream), "engine");
  return failure;
}

size_t first_of(size_t count, Device device, const IssueCandidate& issue) {
  std::exception_ptr failure;
  for (size_t i = 0; i < count; ++i) {
    failure = failure_of(device, [&](cudaStream_t stream) { issue(i, stream); });
    if (!failure) return i;
  }
  std::rethrow_exception(failure);
}

size_t fastest_of(size_t count, Device device, const IssueCandidate& issue, const std::function<void()>& leave) {
  constexpr int kRounds = 3;
  std::optional<size_t> fastest, first;
  float least = std::numeric_limits<float>::infinity();
  std::exception_ptr failure;
  for (size_t i = 0; i < count; ++i) {
    const auto issue_one = [&](cudaStream_t stream) { issue(i, stream); };
    if (auto failed = failure_of(device, issue_one)) {  // this run also loads its code, which cannot be recorded
      failure = std::move(failed);
      continue;
    }
    if (!first) first = i;
    float shortest = least;
    const auto failed = failure_of(device, [&](cudaStream_t) {
      GraphTimer timer(device, issue_one, leave);
      for (int round = 0; round < kRounds; ++round) shortest = std::min(shortest, timer.milliseconds());
    });
    if (failed || shortest >= least) continue;
    fastest = i;
    least = shortest;
  }
  if (!first) std::rethrow_exception(failure);
  return fastest.value_or(*first);
}

EngineFile::EngineFile(std::filesystem::path path) : path_(std::move(path)) { read(); }

const Engine* EngineFile::find(const std::string& key) const {
  const auto found = engines_.find(key);
  return found == engines_.end() ? nullptr : &found->second;
}

void EngineFile::add(const std::string& key, const Engine& engine) {
  read();
  engines_[key] = engine;
  write();
}

void EngineFile::read() {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.rfind(": ");
    if (colon == std::string::npos) continue;
    if (auto engine = parse_engine(std::string_view(line).substr(colon + 2)))
      engines_.try_emplace(line.substr(0, colon), std::move(*engine));
  }
}

void EngineFile::write() const {
  std::string text;
  for (const auto& [key, engine] : engines_) text += key + ": " + to_string(engine) + '\n';
  try {
    std::error_code ignored;
    std::filesystem::create_directories(path_.parent_path(), ignored);
    AtomicFile file(path_);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  } catch (const InputError&) {
  }
}

std::filesystem::path engine_file_path(const std::string& device, size_t cudnn_version, int driver_version) {
  std::string name = "engines-" + device + "-cudnn-" + std::to_string(cudnn_version) + "-driver-" +
                     std::to_string(driver_version) + ".txt";
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '.'; }, '_');
  return cache_folder() / name;
}

}  // namespace tern::cuda
