#include "tern/apps/reproduce/run_settings.h"

#include <string>
#include <vector>

#include "tern/trainer/flags/command_line.h"

namespace tern::reproduce {

TrainSettings settings_of(const networks::Network& network, const Run& run) {
  const Application application = network.application();
  std::vector<const char*> words = {application.name.c_str()};
  for (const auto* part : {&run.flags, &run.places})
    for (const std::string& word : *part) words.push_back(word.c_str());
  return trainer::read_flags(static_cast<int>(words.size()), words.data(), application).settings;
}

}  // namespace tern::reproduce
