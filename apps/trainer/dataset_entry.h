#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"
#include "tern/data/transforms.h"

namespace tern {

struct TrainSettings;

/// A data set that --data names: its source and, for pictures, its form as network input. A value.
struct DatasetEntry {
  std::string name;           ///< the word after --data
  bool needs_folder = false;  ///< reads the files of --data-dir
  /// Loads one split. Ranks in one process share what it returns.
  std::function<std::shared_ptr<const Dataset>(const TrainSettings& settings, Split split)> load;
  bool groups_by_length = false;  ///< batches hold samples of similar Dataset::length
  bool caches = false;            ///< keeps decoded samples in the folder of --cache

  // For a set with the fields "image" and "label" only:

  bool resizes = false;       ///< has pictures of any size, which --resize and --fit make square
  ImageSpec spec = {};        ///< shape of its examples before the transform; see `describe_dataset`
  Transform transform = {};   ///< its normalization; see `training_transform`
  bool preprocessed = false;  ///< no ImageDataset: "image" is f32, as the network gets it, and no transform applies
  /// Converts a user's image to an example of this set: spec.numel() bytes in H, W, C order. The set has no
  /// --predict without it and `spec`.
  std::function<std::vector<uint8_t>(const Image& image, const ImageSpec& spec)> adapt = {};
  std::vector<std::string> classes = {};  ///< class names; empty: numbers
  /// Sets what depends on --data-dir and the flags, before the data are loaded.
  std::function<void(const TrainSettings& settings, DatasetEntry& entry)> describe = {};
};

}  // namespace tern
