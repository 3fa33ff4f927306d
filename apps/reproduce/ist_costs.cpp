#include "tern/apps/reproduce/ist_costs.h"

#include <cstddef>

namespace tern {

double IstCosts::weights() const {
  double sum = 0;
  for (size_t i = 1; i < widths.size(); ++i) sum += static_cast<double>(widths[i - 1] * widths[i]);
  return sum;
}

double IstCosts::outer_weights() const {
  const size_t last = widths.size() - 1;
  return static_cast<double>(widths[0] * widths[1] + widths[last - 1] * widths[last]);
}

double IstCosts::subnet_weights(int64_t n) const {
  return outer_weights() + (weights() - outer_weights()) / static_cast<double>(n);
}

}  // namespace tern
