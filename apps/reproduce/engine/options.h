#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tern::reproduce {

/// What a person chooses about an experiment; unset: as the paper has it, or its short form where `quick`.
struct ExperimentOptions {
  std::string data = {};  ///< empty: the paper's
  std::string data_dir = {};
  std::string device = "cpu";  ///< where programs train, as their --device takes it
  bool quick = false;
  std::optional<int64_t> iterations = {}, seeds = {};
  std::vector<int64_t> workers = {};
};

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

}  // namespace tern::reproduce
