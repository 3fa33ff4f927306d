#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/codec/codec.h"
#include "tern/layers/module.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern {

/// What a model is built from: the samples of the chosen data set, and the values of the application's own flags.
struct ModelSpec {
  std::vector<Field> fields = {};  ///< of a sample, before transforms
  ImageSpec images = {};           ///< of a data set of pictures: as the model gets them, and the number of classes
  std::map<std::string, std::string> choices = {};  ///< by flag, without dashes: {"variant", "caffe"}
  std::map<std::string, int64_t> counts = {};       ///< by flag, without dashes: {"hidden", 512}

  /// The field with this name. Throws InputError if the samples have none.
  const Field& field(std::string_view name) const;
  /// The value of a Choice that `choice_of<E>` made.
  template <Worded E>
  E choice(const std::string& flag) const {
    const auto words = words_of(E{});
    return static_cast<E>(std::ranges::find(words, choices.at(flag)) - words.begin());
  }
};

/// A flag of the application whose value is one of a few words.
struct Choice {
  std::string flag;                 ///< without dashes: "variant"
  std::vector<std::string> values;  ///< the first is the default
  std::string help;
  bool changes_training = true;  ///< false: only evaluations depend on it, so --resume accepts another value
};

/// A choice among the words of an enum. Its first enumerator is the default.
template <Worded E>
Choice choice_of(std::string flag, std::string help) {
  const auto words = words_of(E{});
  return {.flag = std::move(flag), .values = {words.begin(), words.end()}, .help = std::move(help)};
}

/// A flag of the application whose value is a whole number from 1 on.
struct Count {
  std::string flag;  ///< without dashes: "hidden"
  int64_t value;     ///< the default
  std::string help;
  bool changes_training = true;  ///< as in Choice
};

/// Makes a task that has no options, for Application::task.
template <std::derived_from<Task> T>
std::unique_ptr<Task> make_task(const TrainSettings&) {
  return std::make_unique<T>();
}

/// Other default values of the flags, for --recipe NAME. A flag that is given overrules them too.
struct NamedRecipe {
  std::string name;                            ///< "swift"
  std::string help;                            ///< what it is: "40 passes in place of 164"
  std::function<void(TrainSettings&)> change;  ///< called with Application::defaults
};

/// Whether the command line or its --config file has a flag, given without dashes.
using IsGiven = std::function<bool(const char* flag)>;

/// A training program: a model, what it is trained for, and the trainer's flags.
struct Application {
  std::string name;  ///< name of the program
  std::function<std::unique_ptr<Module>(const ModelSpec&)> model;
  /// What the model is trained for; without it, ImageClassification. Called with the defaults, to learn which data sets
  /// there are, and with the settings of a run.
  std::function<std::unique_ptr<Task>(const TrainSettings&)> task = {};
  TrainSettings defaults = {};
  std::vector<NamedRecipe> recipes = {};
  std::vector<Choice> choices = {};
  std::vector<Count> counts = {};
  std::vector<CodecEntry> codecs = {};      ///< codecs that --codec accepts in addition to tern's
  std::vector<DatasetEntry> datasets = {};  ///< data sets that --data accepts in addition to the task's
  /// Adds the augmentation of the training images (crops, flips and so on) to the data set's normalization. `images` is
  /// the shape of the data set's images.
  std::function<void(Transform&, const ImageSpec& images)> augment = {};
  /// Called once the first values are drawn, before --init is read. Sets values that depend on the training data;
  /// `transform` is theirs. All ranks call it, with the same data. Not called for --resume or a sharded model.
  std::function<void(Module&, const Dataset& training, const Transform& transform)> prepare = {};
  /// Called with the settings as read. Sets defaults that depend on another flag, if the flag is not given.
  std::function<void(TrainSettings&, const IsGiven&)> settle = {};
};

/// Exit codes of every application.
enum ExitCode : int { kDone = 0, kInternalError = 1, kBadInput = 2, kLostPeer = 3, kInterrupted = 130 };

/// Runs a whole program: reads the flags, trains, evaluates or predicts, writes the requested files, and returns the
/// exit code. Prints an error as one sentence on stderr. Call it from `main` before anything uses a thread, because the
/// process may restart itself once, with a passive OpenMP wait policy.
int train(int argc, char** argv, const Application& application);

/// Calls `body`. If it throws, prints a sentence on stderr, after `name`, and returns the exit code. Then waits for the
/// readers of stdout and stderr.
int run_application(const std::string& name, const std::function<int()>& body);

}  // namespace tern
