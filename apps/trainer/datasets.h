#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/trainer/image.h"
#include "tern/apps/trainer/settings.h"
#include "tern/data/dataset.h"
#include "tern/data/transforms.h"

namespace tern {

/// A data set that --data names: where it comes from, and how a network sees it. Adding one is one more entry of the
/// list in datasets.cpp.
struct DatasetEntry {
  const char* name;
  bool needs_folder;  ///< reads the files of --data-dir
  ImageSpec spec;     ///< of its examples, before the transform
  std::unique_ptr<Dataset> (*load)(const TrainSettings& settings, Split split);
  Transform transform;  ///< its normalization; see `training_transform`
  /// A person's image as an example of this set: spec.numel() bytes in H, W, C order.
  std::vector<uint8_t> (*adapt)(const Image& image, const ImageSpec& spec);
  std::span<const char* const> classes = {};  ///< their names, where they are more than numbers
};

std::span<const DatasetEntry> datasets();

/// The data of a run; ranks in one process share them.
struct RunData {
  std::shared_ptr<const Dataset> training, test;
  std::string fingerprint = {};  ///< of `training`: the CRC-32C of its pixels and labels in eight hexadecimal digits
};
RunData load_run_data(const TrainSettings& settings);

/// How training sees the data set of --data: its normalization with the application's augmentation. Evaluation takes
/// `for_evaluation()`.
Transform training_transform(const TrainSettings& settings);

/// An InputError that lists the names where `name` is none of them.
const DatasetEntry& find_dataset(const std::string& name);

}  // namespace tern
