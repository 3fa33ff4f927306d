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

/// A data set that --data names: where it comes from, and how a network sees it. Adding one is one more entry of the
/// list in datasets.cpp.
struct DatasetEntry {
  const char* name;
  bool needs_folder;     ///< reads the files of --data-dir
  bool resizes = false;  ///< pictures of any size, which --resize and --fit make into squares
  ImageSpec spec;        ///< of its examples, before the transform; see `describe_dataset`
  std::unique_ptr<Dataset> (*load)(const TrainSettings& settings, Split split);
  Transform transform;  ///< its normalization; see `training_transform`
  /// A person's image as an example of this set: spec.numel() bytes in H, W, C order.
  std::vector<uint8_t> (*adapt)(const Image& image, const ImageSpec& spec);
  std::vector<std::string> classes = {};  ///< their names, where they are more than numbers
  /// Sets what --data-dir and the flags decide; null where nothing is left to decide.
  void (*describe)(const TrainSettings& settings, DatasetEntry& entry) = nullptr;
};

std::span<const DatasetEntry> datasets();

/// The entry of --data with all that its folder and the flags decide.
DatasetEntry describe_dataset(const TrainSettings& settings);

/// The data of a run; ranks in one process share them.
struct RunData {
  std::shared_ptr<const Dataset> training, test;
  std::string fingerprint = {};  ///< of `training`, in eight hexadecimal digits
};
RunData load_run_data(const TrainSettings& settings);
std::unique_ptr<Dataset> load_test_data(const TrainSettings& settings);

/// How training sees the data set of --data, whose examples are `images`: its normalization with the application's
/// augmentation. Evaluation takes `for_evaluation()`.
Transform training_transform(const TrainSettings& settings, const ImageSpec& images);

/// An InputError that lists the names where `name` is none of them.
const DatasetEntry& find_dataset(const std::string& name);
/// The same, but null where `name` is none of them.
const DatasetEntry* known_dataset(const std::string& name);

/// Images that each of `ranks` trains on in a step: its share of --batch-size, which is the total where gradients are
/// averaged at every step and each rank's own otherwise. An InputError where the ranks cannot share it equally.
int64_t images_per_rank(const TrainSettings& settings, int ranks);

/// This rank's batches for training; `data` must outlive the loader. An InputError where it has fewer images.
std::unique_ptr<DataLoader> make_training_loader(const TrainSettings& settings, const Dataset& data, const Team& team,
                                                 bool with_images);

/// The same training batches on every rank, as evaluation sees them: for statistics that all agree on.
std::unique_ptr<DataLoader> make_calibration_loader(const TrainSettings& settings, const Dataset& data);

/// Batches of --eval-batch-size at most: all ranks together every image once.
std::unique_ptr<DataLoader> make_test_loader(const TrainSettings& settings, const Dataset& data, const Team& team);

}  // namespace tern::trainer
