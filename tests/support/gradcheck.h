#pragma once

#include <functional>
#include <vector>

#include "tern/autograd/variable.h"

namespace tern::test {

/// An f64 tensor of standard normal draws that follow from `number` alone, each pushed away from 0 by 0.1 so that
/// kinks there stay out of a finite difference's reach.
Tensor random_tensor(const Shape& shape, uint32_t number, MemoryFormat format = MemoryFormat::row_major);

using Function = std::function<Variable(const std::vector<Variable>&)>;

/// Expects, for a fixed random projection p, that the gradient of Σ p·f(inputs) by every element of every input is the
/// central difference over ±1e-6, within 1e-7 of the largest. Inputs are f64; f is called often and must be pure.
void expect_gradients(const Function& f, const std::vector<Tensor>& inputs);

/// The same with rank-4 inputs all row-major, all channels-last, and every other one channels-last; each must also give
/// the same values.
void expect_gradients_in_every_format(const Function& f, const std::vector<Tensor>& inputs);

}  // namespace tern::test
