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
  std::ifstream file(path);
  if (!file) return std::nullopt;
  const Json kept = Json::parse(file, nullptr, false);
  check_input(kept.is_object() && kept.contains("seconds") && kept.contains("numbers"), path.string(),
              ": expected the numbers of a study");
  RunResult result;
  result.seconds = kept["seconds"];
  result.numbers = kept["numbers"].get<Numbers>();
  return result;
}

}  // namespace tern
