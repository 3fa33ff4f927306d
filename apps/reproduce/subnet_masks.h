#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/sample.h"

namespace tern::reproduce {

/// What a tensor of a perceptron becomes in one worker's subnet, over many rounds. M(x) keeps the elements x of the
/// subnet, times 1/ξ, and is 0 elsewhere; ξ is the share of the elements (IST, Yuan et al., 2019, compressed iterates).
struct MaskSample {
  std::string tensor;
  double share = 0;      ///< ξ
  Sample along = {};     ///< ⟨M(x), x⟩ / ‖x‖²: 1 if unbiased (Property 1)
  Sample variance = {};  ///< ‖M(x) − x‖² / ‖x‖²: (1 − ξ)/ξ (Property 2)
  /// ‖mean of M(x) − x‖² over its expectation for unbiased draws of the expected variance: about 1 if unbiased.
  double mean_error = 0;
  int64_t most = 0;   ///< the most workers that have an element in one round
  int64_t least = 0;  ///< the fewest
};

/// Draws the subnets of `rounds` rounds as independent subnet training does, for a perceptron with two hidden layers.
/// The statistics are those of the first worker; `most` and `least` are over all workers. Calls `progress` with the
/// number of tensors that are done.
std::vector<MaskSample> sample_masks(int workers, int64_t rounds, uint64_t seed,
                                     const std::function<void(int64_t tensors)>& progress);

}  // namespace tern::reproduce
