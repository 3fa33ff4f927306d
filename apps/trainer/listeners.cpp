#include "tern/apps/trainer/listeners.h"

#include "tern/apps/trainer/curves.h"
#include "tern/apps/trainer/event_file.h"
#include "tern/apps/trainer/json_log.h"
#include "tern/apps/trainer/progress.h"

namespace tern {

std::vector<std::unique_ptr<Listener>> make_listeners(const TrainSettings& s, LineWriter& out) {
  std::vector<std::unique_ptr<Listener>> listeners;
  if (!s.quiet) listeners.push_back(std::make_unique<Progress>(out));
  if (!s.log.empty()) listeners.push_back(std::make_unique<JsonLog>(s.log, s.resume));
  if (!s.tensorboard.empty()) listeners.push_back(std::make_unique<EventFile>(s.tensorboard));
  if (!s.plot.empty()) listeners.push_back(std::make_unique<Curves>(s.plot));
  return listeners;
}

}  // namespace tern
