#pragma once

#include <cstdint>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// The costs of a training step of a perceptron on n sites, as section 3.4 of IST (Yuan et al.) counts them, summed
/// over all sites. It counts the numbers sent to the sites ("the inflow to each site") and the operations of matrix
/// products: 4 per weight and example, the paper's convention. Like the paper, it leaves out biases and normalisation.
/// A value; the defaults are Figure 2's network.
struct IstCosts {
  std::vector<int64_t> widths = {1000, 4000, 4000, 4000, 200};  ///< N_0 to N_l
  int64_t batch = 512;                                          ///< B
  int64_t local_steps = 10;                                     ///< J

  double weights() const;  ///< Σ N_{i-1} N_i
  /// Weights of all subnets together: the first and the last matrix once, and 1/n of the matrices between hidden
  /// layers.
  double subnet_weights(int64_t n) const;

  double parallel_floats(int64_t n) const { return static_cast<double>(n) * weights(); }
  /// The formula as printed in the paper; its sum includes the first and the last matrix a second time.
  double printed_floats(int64_t n) const { return printed_weights(n) / static_cast<double>(local_steps); }
  double exact_floats(int64_t n) const { return subnet_weights(n) / static_cast<double>(local_steps); }

  double parallel_operations() const { return per_weight() * weights(); }
  /// The formula as printed in the paper, with the same sum.
  double printed_operations(int64_t n) const { return per_weight() * printed_weights(n); }
  double exact_operations(int64_t n) const { return per_weight() * subnet_weights(n); }

 private:
  double outer_weights() const;
  double printed_weights(int64_t n) const { return outer_weights() + weights() / static_cast<double>(n); }
  double per_weight() const { return 4 * static_cast<double>(batch); }
};

/// Trains the perceptron of `costs` on random examples with `workers` threads of this process. Makes one step of
/// data-parallel training with the ring; the workers share the batch. Makes one round of independent subnets; each
/// worker has a whole batch. Returns the costs per step, summed over all workers:
/// - "parallel_floats", "ist_floats": payload values by the ledgers; half of what is received, because the workers send
///   as many values as they receive.
/// - "ist_operations": 4 per example and weight of a worker's subnet.
Numbers count_ist_costs(const IstCosts& costs, int workers, const StudyProgress& progress);

}  // namespace tern::reproduce
