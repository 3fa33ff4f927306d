#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tern::reproduce {

/// The user's choices for an experiment. Unset: as in the paper, or its short form if `quick` or `swift` is set.
struct ExperimentOptions {
  std::string data = {};  ///< empty: the paper's
  std::string data_dir = {};
  std::string device = "cpu";         ///< value of --device for the training programs
  bool quick = false, swift = false;  ///< at most one of them
  std::optional<int64_t> iterations = {}, seeds = {};
  std::vector<int64_t> workers = {};
  std::string steps = {};  ///< file of measured training steps; empty: none
};

/// The parsed command line of `reproduce`.
struct ReproduceCommand {
  std::string name;  ///< name of the experiment
  ExperimentOptions options;
  std::string folder;  ///< folder for the results
  std::string kept;    ///< folder of the small files of `keep_result`; empty: none
  std::string line;    ///< the command line, quoted for a shell
  std::string text;    ///< if not empty: only print this
};

/// Reads and checks the command line. Throws InputError if it is wrong.
ReproduceCommand read_command(int argc, const char* const* argv);

}  // namespace tern::reproduce
