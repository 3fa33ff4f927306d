#include "tern/apps/reproduce/numbers_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tern/apps/reproduce/text_file.h"
#include "tern/core/error.h"

namespace tern {

using Json = nlohmann::json;

void write_numbers(const std::filesystem::path& path, const RunResult& result) {
  for (const auto& [name, list] : result.numbers)
    check(std::ranges::all_of(list, [](double x) { return std::isfinite(x); }), path.string(), ": '", name,
          "' has NaN or infinite numbers");
  write_text(path, Json{{"seconds", result.seconds}, {"numbers", result.numbers}}.dump() + '\n');
}

std::optional<RunResult> read_numbers(const std::filesystem::path& path) {
  try {
    std::ifstream file(path);
    const Json kept = Json::parse(file);
    RunResult result;
    result.seconds = kept.at("seconds");
    result.numbers = kept.at("numbers").get<Numbers>();
    return result;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tern
