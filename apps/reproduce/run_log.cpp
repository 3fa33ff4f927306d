#include "tern/apps/reproduce/run_log.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tern {
namespace {

using Json = nlohmann::json;

/// The last whole line; null where there is none that is short, as all but the first are.
Json last_event(const std::filesystem::path& log) {
  constexpr std::streamoff kMost = 4096;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff length = std::min<std::streamoff>(kMost, file.tellg());
  file.seekg(-length, std::ios::end);
  std::string text(static_cast<size_t>(length), '\0');
  file.read(text.data(), length);
  const size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return {};
  const size_t begin = text.rfind('\n', end - 1);
  if (begin == std::string::npos) return {};
  const Json event = Json::parse(text.substr(begin + 1, end - begin - 1), nullptr, false);
  return event.is_object() ? event : Json();
}

std::optional<int64_t> number(const Json& event, const char* key) {
  return event.contains(key) ? std::optional(event[key].get<int64_t>()) : std::nullopt;
}

}  // namespace

std::optional<RunResult> read_result(const std::filesystem::path& log) {
  const Json event = last_event(log);
  if (event.is_null() || event.value("event", "") != "done") return std::nullopt;
  return RunResult{.accuracy = event.at("accuracy"),
                   .loss = event.at("loss"),
                   .seconds = event.at("seconds"),
                   .bytes_sent_payload = number(event, "bytes_sent_payload"),
                   .bytes_sent_overhead = number(event, "bytes_sent_overhead")};
}

std::optional<int64_t> read_step(const std::filesystem::path& log) {
  const Json event = last_event(log);
  return event.is_null() ? std::nullopt : number(event, "step");
}

}  // namespace tern
