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

/// One rank's part of everything that a run needs to continue as if it had never stopped. `seed` and `step` are the
/// whole random state, because random numbers are counter-based. In a file, the tensor "conv1.weight" of section
/// "model" has the name "model/conv1.weight".
struct Checkpoint {
  std::string run = {};  ///< random id of the run; the same in all parts of all its checkpoints
  int64_t rank = 0;      ///< the rank that this part belongs to
  int64_t ranks = 1;     ///< number of parts of the checkpoint, one per rank
  int64_t step = 0;      ///< steps taken
  int64_t epoch = 0;     ///< epochs completed
  int64_t position = 0;  ///< samples of the current epoch that were trained on
  uint64_t seed = 0;
  Metadata contract = {};               ///< settings that a run must share with this one to continue from here, by name
  Metadata notes = {};                  ///< notes of the application
  std::vector<std::string> parts = {};  ///< in rank 0's part: the checksums of the files of ranks 1, 2, ...
  std::vector<std::pair<std::string, StateDict>> sections =
      {};                           ///< "model", "optimizer", "average", ...; names have no '/'
  std::filesystem::path file = {};  ///< the file that this was read from
  std::string checksum = {};        ///< checksum of that file

  /// Throws InputError that names the file if there is no such section.
  const StateDict& section(std::string_view name) const;
  /// Passes a section to `target.load_state`. If that throws InputError, the message then also names the file.
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

/// Writes one checkpoint atomically to `folder` as "step-00001234.tern", a safetensors file with a checksum. Each run
/// has its own folder, which is made if it is missing. Then removes the checkpoints up to step `whole`, by default this
/// one, except the newest two of them, and temporary files of writers that were killed. To find out before the first
/// step whether writing will work, use `check_writable_folder`.
SavedCheckpoint save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                std::optional<int64_t> whole = {});

/// The file with the highest step, valid or not. A run that does not resume should refuse a folder that has one.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// Reads the latest checkpoint. Throws InputError if there is none, or if the latest one is invalid (see
/// read_checkpoint). In the second case the message also names the newest earlier checkpoint that is valid. Reads into
/// the memory of `into`, as read_safetensors does.
Checkpoint load_checkpoint(const std::filesystem::path& folder, const StateDict& into = {});

/// Reads a rank's part of a checkpoint, as read_checkpoint does. If it is not valid, the message also names the newest
/// valid file of an earlier step in its folder.
Checkpoint load_checkpoint_part(const std::filesystem::path& file, const StateDict& into = {});

/// Whether the contents of a file are a checkpoint.
bool is_checkpoint(const SafetensorsFile& file);
/// Converts what was read from `file` to a checkpoint. Throws InputError that names the file, the field of its
/// metadata, what was found and what was expected.
Checkpoint to_checkpoint(SafetensorsFile read, const std::filesystem::path& file);
/// Reads one file, so that a run can continue from it. Throws InputError if the file is not valid, or if its step
/// differs from the step in its name. Reads into the memory of `into`, as read_safetensors does.
Checkpoint read_checkpoint(const std::filesystem::path& file, const StateDict& into = {});
/// Reads everything of the latest checkpoint except its tensors; its checksum is not checked. Throws InputError if
/// there is none.
Checkpoint load_checkpoint_place(const std::filesystem::path& folder);

}  // namespace tern
