#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tern {

/// The events of a run's log (--log), in order.
inline std::vector<nlohmann::json> read_log(const std::string& path) {
  std::vector<nlohmann::json> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

/// The events of one kind, such as "step" or "eval".
inline std::vector<nlohmann::json> read_log(const std::string& path, const std::string& event) {
  std::vector<nlohmann::json> events = read_log(path);
  std::erase_if(events, [&](const nlohmann::json& each) { return each["event"] != event; });
  return events;
}

}  // namespace tern
