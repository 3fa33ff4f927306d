#pragma once

#include <cstdint>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// What section 3.4 of IST (Yuan et al.) counts for a step of training a perceptron on n sites, over all sites: numbers
/// that travel to them ("the inflow to each site"), and operations of its matrix products, 4 a weight and example by
/// the paper's convention. Biases and normalisation are left out, as there. A value; the defaults are Figure 2's
/// network.
struct IstCosts {
  std::vector<int64_t> widths = {1000, 4000, 4000, 4000, 200};  ///< N_0 to N_l
  int64_t batch = 512;                                          ///< B
  int64_t local_steps = 10;                                     ///< J

  double weights() const;  ///< Σ N_{i-1} N_i
  /// In all subnets together: first and last matrix once, a share 1/n of those between hidden layers.
  double subnet_weights(int64_t n) const;

  double parallel_floats(int64_t n) const { return static_cast<double>(n) * weights(); }
  /// As the paper prints it; its sum runs over the first and last matrix again.
  double printed_floats(int64_t n) const { return printed_weights(n) / static_cast<double>(local_steps); }
  double exact_floats(int64_t n) const { return subnet_weights(n) / static_cast<double>(local_steps); }

  double parallel_operations() const { return per_weight() * weights(); }
  /// As the paper prints it, with the same sum.
  double printed_operations(int64_t n) const { return per_weight() * printed_weights(n); }
  double exact_operations(int64_t n) const { return per_weight() * subnet_weights(n); }

 private:
  double outer_weights() const;
  double printed_weights(int64_t n) const { return outer_weights() + weights() / static_cast<double>(n); }
  double per_weight() const { return 4 * static_cast<double>(batch); }
};

/// Trains the perceptron of `costs` on random examples by `workers` threads of this process, one step of data parallel
/// training by a ring, which share the batch, and one round of independent subnets with a whole batch for each; what
/// that took, a step and over all workers:
///   "parallel_floats", "ist_floats"  numbers of payload by the ledgers, half of what is received: as many go to the
///                                    workers as come from them
///   "ist_operations"                 4 a weight of each worker's subnet and example
Numbers count_ist_costs(const IstCosts& costs, int workers, const StudyProgress& progress);

}  // namespace tern::reproduce
