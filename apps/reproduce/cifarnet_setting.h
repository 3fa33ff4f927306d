#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/networks/cifarnet.h"

namespace tern::reproduce {

/// How CifarNet is trained: as in the paper with Adam at a constant rate, in minutes, or by the recipe swift.
enum class CifarNetCourse : uint8_t { paper, quick, swift };

/// How CifarNet is trained for a table of TernGrad: the flags of `train_cifarnet`, which studies use too.
struct CifarNetSetting {
  DataChoice data;
  int64_t batch_size = networks::cifarnet().recipe.defaults.batch_size;
  int64_t iterations = networks::cifarnet().recipe.defaults.iterations.value();
  CifarNetCourse course = CifarNetCourse::paper;

  std::vector<std::string> flags() const;
  /// Text for the result page, without the number of steps and for any batch.
  std::string sentence() const;
};

/// The flags for `workers` threads of one process that train with TernGrad's codec.
std::vector<std::string> ternary_flags(int64_t workers);

}  // namespace tern::reproduce
