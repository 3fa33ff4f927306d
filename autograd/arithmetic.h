#pragma once

#include "tern/autograd/variable.h"

// Elementwise arithmetic. Operands share dtype and broadcast as in PyTorch; the result has the format of the
// operand with its shape (a's if both).

namespace tern {

Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);
/// max(a + b, 0) of equal shapes: how a residual block ends.
Variable add_relu(const Variable& a, const Variable& b);
/// factor·x
Variable scale(const Variable& x, double factor);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return subtract(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return multiply(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return divide(a, b); }

}  // namespace tern
