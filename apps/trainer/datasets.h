#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/trainer/settings.h"
#include "tern/data/dataset.h"
#include "tern/data/image.h"
#include "tern/data/transforms.h"

namespace tern {

/// A data set that --data names: where it comes from, and how a network sees it. Adding one is one more entry of the
/// list in datasets.cpp.
struct DatasetEntry {
  const char* name;
  bool needs_folder;  ///< reads the files of --data-dir
  ImageSpec spec;     ///< of its examples, before the transform; see `describe_dataset`
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

}  // namespace tern
