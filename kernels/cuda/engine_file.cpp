#include "tern/kernels/cuda/engine_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"

namespace tern::cuda {
namespace {

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

std::filesystem::path engine_file_path(const std::string& device, size_t cudnn_version) {
  std::string name = "engines-" + device + "-cudnn-" + std::to_string(cudnn_version) + ".txt";
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '.'; }, '_');
  return cache_folder() / name;
}

}  // namespace tern::cuda
