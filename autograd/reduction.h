#pragma once

#include <vector>

#include "tern/autograd/variable.h"

namespace tern {

/// The sum over `dimensions` (negative ones count from the end; none given: over all), which then have extent 1 with
/// `keep` and are gone without. Row-major; in x's dtype.
Variable sum(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);
/// As `sum`, divided by how many elements it sums.
Variable mean(const Variable& x, const std::vector<int>& dimensions = {}, bool keep = false);

/// scale·dy summed to `shape`, which broadcasts to dy's: the gradient of an operand that was broadcast.
Tensor sum_to(const Tensor& dy, const Shape& shape, double scale = 1);

}  // namespace tern
