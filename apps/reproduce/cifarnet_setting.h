#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/networks/cifarnet.h"

namespace tern::reproduce {

/// How CifarNet is trained for a table of TernGrad: `train_cifarnet` with these flags, or a study with the same.
struct CifarNetSetting {
  DataChoice data;
  int64_t batch_size = networks::cifarnet().recipe.defaults.batch_size;
  int64_t iterations = networks::cifarnet().recipe.defaults.iterations.value();
  bool short_form = false;  ///< of a rate that falls to zero, instead of the paper's constant one

  std::vector<std::string> flags() const;
  /// One sentence for a page, without the length.
  std::string sentence() const;
};

/// The flags by which so many workers of one process train with TernGrad's codes.
std::vector<std::string> ternary_flags(int64_t workers);

/// The settings that `application` would read from these words.
TrainSettings read_settings(const Application& application, const std::vector<std::string>& words);

}  // namespace tern::reproduce
