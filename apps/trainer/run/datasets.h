#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"
#include "tern/data/loader.h"
#include "tern/data/transforms.h"
#include "tern/trainer/run/team.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// A data set that --data names: its source, and its form as network input. To add one, add an entry to the list in
/// datasets.cpp.
struct DatasetEntry {
  const char* name;
  bool needs_folder;     ///< reads the files of --data-dir
  bool resizes = false;  ///< has pictures of any size, which --resize and --fit make square
  ImageSpec spec;        ///< shape of its examples before the transform; see `describe_dataset`
  std::unique_ptr<Dataset> (*load)(const TrainSettings& settings, Split split);
  Transform transform;  ///< its normalization; see `training_transform`
  /// Converts a user's image to an example of this set: spec.numel() bytes in H, W, C order.
  std::vector<uint8_t> (*adapt)(const Image& image, const ImageSpec& spec);
  std::vector<std::string> classes = {};  ///< class names; empty: numbers
  /// Sets what depends on --data-dir and the flags; null if nothing does.
  void (*describe)(const TrainSettings& settings, DatasetEntry& entry) = nullptr;
};

std::span<const DatasetEntry> datasets();

/// The entry of --data, completed from its folder and the flags.
DatasetEntry describe_dataset(const TrainSettings& settings);

/// The data of a run. Ranks in one process share them.
struct RunData {
  std::shared_ptr<const Dataset> training, test;
  std::string fingerprint = {};  ///< of `training`, in eight hexadecimal digits
};
RunData load_run_data(const TrainSettings& settings);
std::unique_ptr<Dataset> load_test_data(const TrainSettings& settings);

/// The transform for training on the data set of --data with examples of shape `images`: its normalization and the
/// application's augmentation. Evaluation uses its `for_evaluation()`. Throws InputError if --resize is too small.
Transform training_transform(const TrainSettings& settings, const ImageSpec& images);

/// The entry of a data set. Throws InputError with the list of names if there is none.
const DatasetEntry& find_dataset(const std::string& name);
/// The same, but null if there is none.
const DatasetEntry* known_dataset(const std::string& name);

/// Images per step of each of `ranks` ranks. With data-parallel training it is a share of --batch-size; other methods
/// use --batch-size for each rank. Throws InputError if the ranks cannot share it equally.
int64_t images_per_rank(const TrainSettings& settings, int ranks);

/// A loader of this rank's training batches; `data` must outlive it. Throws InputError if a batch is larger than its
/// share.
std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& settings, const Dataset& data, const Team& team,
                                                 bool with_images);

/// A loader of training batches for batch-norm statistics: the same on every rank, transformed as in evaluation.
std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& settings, const Dataset& data);

/// A loader of this rank's test images in batches of at most --eval-batch-size. All ranks together read every image
/// once.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data, const Team& team);

}  // namespace tern::trainer
