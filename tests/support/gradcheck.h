#pragma once

#include <functional>
#include <vector>

#include "tern/autograd/variable.h"

namespace tern::test {

/// An f64 tensor of standard normal numbers that depend on `number` alone. Each number is moved away from 0 by 0.1, so
/// that a finite difference does not cross a kink at 0.
Tensor random_tensor(const Shape& shape, uint32_t number, MemoryFormat format = MemoryFormat::row_major);

using Function = std::function<Variable(const std::vector<Variable>&)>;

/// Checks the gradient of Σ p·f(inputs) by every element of every input, for a fixed random projection p. Expects the
/// central difference over ±1e-6, within 1e-7 of the largest. The inputs are f64. f must be pure, because it is called
/// often.
void expect_gradients(const Function& f, const std::vector<Tensor>& inputs);

/// Does the same three times: rank-4 inputs all row-major, all channels-last, and every other one channels-last. The
/// values of f must be the same each time.
void expect_gradients_in_every_format(const Function& f, const std::vector<Tensor>& inputs);

}  // namespace tern::test
