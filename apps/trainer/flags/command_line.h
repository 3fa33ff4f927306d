#pragma once

#include <optional>
#include <string>

#include "tern/dist/comm/launch.h"
#include "tern/trainer/application.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// What a command line asks for: to run with these settings, or only to print `text`.
struct Invocation {
  TrainSettings settings = {};
  std::optional<ClusterPlace> place = {};  ///< where this process is one of several ranks
  bool run = true;
  std::string text = {};
};

/// Reads a command line, the file of its --config and this process's place in a cluster against the trainer's flags and
/// the application's own. An InputError names the first flag that is unknown, unreadable, out of range or at odds with
/// another.
Invocation read_flags(int argc, const char* const* argv, const Application& application);

/// `settings` as a file for --config: one `flag=value` per line; what has no effect stands as a comment.
std::string config_text(const TrainSettings& settings);

}  // namespace tern::trainer
