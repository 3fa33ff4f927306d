#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/codec/codec.h"
#include "tern/layers/module.h"
#include "tern/trainer/settings.h"

namespace tern {

/// What a model is built for: the images of the chosen data set, and the application's own choices.
struct ModelSpec {
  ImageSpec images;
  std::map<std::string, std::string> choices;  ///< by flag without dashes: {"variant", "caffe"}
  std::map<std::string, int64_t> counts;       ///< {"hidden", 512}
};

/// A flag of an application's own: one word out of a few.
struct Choice {
  std::string flag;                 ///< without dashes: "variant"
  std::vector<std::string> values;  ///< the first is the default
  std::string help;
};

/// A flag of an application's own: a number from 1 on.
struct Count {
  std::string flag;  ///< without dashes: "hidden"
  int64_t value;     ///< the default
  std::string help;
};

/// Whether the command line or its --config file has a flag, given without dashes.
using IsGiven = std::function<bool(const char* flag)>;

/// A training program: a model under the trainer's flags.
struct Application {
  std::string name;  ///< as a person types it
  std::function<std::unique_ptr<Module>(const ModelSpec&)> model;
  TrainSettings defaults = {};
  std::vector<Choice> choices = {};
  std::vector<Count> counts = {};
  std::vector<CodecEntry> codecs = {};  ///< that --codec takes beside tern's
  /// What training images, as the data set has them, go through beside its own normalization: crops, flips and the
  /// like.
  std::function<void(Transform&, const ImageSpec& images)> augment = {};
  /// Called with the settings as read: defaults that depend on another flag, such as the application's own, for those
  /// that are not given.
  std::function<void(TrainSettings&, const IsGiven&)> settle = {};
};

/// How every application ends.
enum ExitCode : int { kDone = 0, kInternalError = 1, kBadInput = 2, kLostPeer = 3, kInterrupted = 130 };

/// A whole program: reads the flags, trains, evaluates or predicts, writes what was asked for, and returns the exit
/// code. Errors are one sentence on stderr. Call from `main`, before anything has used a thread: the process may
/// start itself anew, once, with a passive OpenMP wait policy.
int train(int argc, char** argv, const Application& application);

/// Calls `body` and turns what it throws into a sentence on stderr, after `name`, and an exit code. Then waits for the
/// readers of stdout and stderr.
int run_application(const std::string& name, const std::function<int()>& body);

}  // namespace tern
