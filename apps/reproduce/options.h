#pragma once

#include <string>

#include "tern/apps/reproduce/experiment.h"

namespace tern {

/// A command line of `reproduce`, read.
struct ReproduceCommand {
  std::string name;  ///< of the experiment
  ExperimentOptions options;
  std::string folder;  ///< of the results
  std::string line;    ///< as a shell would read it again
  std::string text;    ///< to print instead, where it is not empty
};

/// An InputError says what a person has to put right.
ReproduceCommand read_command(int argc, const char* const* argv);

}  // namespace tern
