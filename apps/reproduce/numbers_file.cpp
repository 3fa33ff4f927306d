#include "tern/apps/reproduce/numbers_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "tern/apps/reproduce/text_file.h"
#include "tern/core/crc32c.h"
#include "tern/core/error.h"

namespace tern {

using Json = nlohmann::json;

namespace {

constexpr const char* kSum = "crc32c";

/// Of all that is kept beside it, as it is dumped.
uint32_t sum_of(const Json& kept) {
  const std::string text = kept.dump();
  return crc32c(std::as_bytes(std::span(text)));
}

}  // namespace

void write_numbers(const std::filesystem::path& path, const RunResult& result) {
  for (const auto& [name, list] : result.numbers)
    check(std::ranges::all_of(list, [](double x) { return std::isfinite(x); }), path.string(), ": '", name,
          "' has NaN or infinite numbers");
  Json kept = {{"seconds", result.seconds}, {"numbers", result.numbers}};
  kept[kSum] = sum_of(kept);
  write_text(path, kept.dump() + '\n');
}

std::optional<RunResult> read_numbers(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return std::nullopt;
  try {
    std::ifstream file(path);
    Json kept = Json::parse(file);
    const Json sum = kept.at(kSum);
    kept.erase(kSum);
    if (sum != sum_of(kept)) return std::nullopt;
    RunResult result;
    result.seconds = kept.at("seconds");
    result.numbers = kept.at("numbers").get<Numbers>();
    return result;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tern
