#pragma once

#include <optional>
#include <string>

#include "tern/dist/comm/launch.h"
#include "tern/trainer/application.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// The result of a command line: run with these settings, or only print `text`.
struct Invocation {
  TrainSettings settings = {};
  std::optional<ClusterPlace> place = {};  ///< set if this process is one of several ranks
  bool run = true;
  std::string text = {};
};

/// Reads a command line, the file of its --config and this process's place in a cluster. Accepts the trainer's flags
/// and the application's own. Throws InputError with the first flag that is unknown, unreadable, out of range or in
/// conflict with another.
Invocation read_flags(int argc, const char* const* argv, const Application& application);

/// `settings` as a file for --config: one `flag=value` per line. A setting without effect becomes a comment.
std::string config_text(const TrainSettings& settings);

}  // namespace tern::trainer
