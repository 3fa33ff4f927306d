#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/safetensors.h"
#include "tern/core/state_dict.h"

namespace tern {

/// One rank's part of all that a run needs to go on as if it had never stopped. Random state is `seed` and `step`:
/// numbers are counter-based. In a file, section "model" holds the tensor "conv1.weight" as "model/conv1.weight".
struct Checkpoint {
  std::string run = {};  ///< the run's random id: every part of every checkpoint of one run has the same
  int64_t rank = 0;      ///< whose part this is
  int64_t ranks = 1;     ///< how many parts the checkpoint has, one for each rank
  int64_t step = 0;      ///< steps taken
  int64_t epoch = 0;     ///< epochs completed
  int64_t position = 0;  ///< samples of the current epoch that were trained on
  uint64_t seed = 0;
  Metadata contract = {};               ///< what a run must have in common with this one to go on from here, by name
  Metadata notes = {};                  ///< the application's own
  std::vector<std::string> parts = {};  ///< in rank 0's: the checksums of the files of ranks 1, 2, ...
  std::vector<std::pair<std::string, StateDict>> sections =
      {};                           ///< "model", "optimizer", "average", ...; no '/' in names
  std::filesystem::path file = {};  ///< where it was read from
  std::string checksum = {};        ///< of that file

  /// An InputError names the file where it has no such section.
  const StateDict& section(std::string_view name) const;
  /// Hands a section to `target.load_state`, whose InputErrors then name the file as well.
  template <class Target>
  void restore(std::string_view name, Target&& target) const {
    try {
      target.load_state(section(name));
    } catch (const InputError& error) {
      fail_input({file.string(), ": ", name, ": ", error.what()});
    }
  }
};

struct SavedCheckpoint {
  std::filesystem::path file;
  std::string checksum;  ///< eight hexadecimal digits
};

/// Checkpoints live in a folder of their run's own as "step-00001234.tern": safetensors files with a checksum, written
/// atomically. Writes one, in a new folder where there is none, then removes all but the newest `kept` up to its step,
/// and what killed writers left. Before a first step, `check_writable_folder` finds whether it will work.
SavedCheckpoint save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint, size_t kept = 2);

/// The file of the most steps, whole or not. A run that does not resume should refuse a folder that has one.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// Reads the latest. An InputError says that there is none, or what is wrong with it (see read_checkpoint) and which
/// earlier one is whole.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

/// Whether a file's contents are a checkpoint's, of this format or the one before, which had no run id.
bool is_checkpoint(const SafetensorsFile& file);
/// The checkpoint in what was read from `file`, of either format. An InputError names the file, the field of its
/// metadata, what was found and what was expected.
Checkpoint to_checkpoint(SafetensorsFile read, const std::filesystem::path& file);
/// Reads one file of this format, to go on from it: its step must be the one in its name.
Checkpoint read_checkpoint(const std::filesystem::path& file);

}  // namespace tern
