#pragma once

#include <cstdint>
#include <string>

#include "tern/layers/module.h"

namespace tern {

/// Runs `model` forward on `x` once more and says where a number that is not finite first appears: "the output of layer
/// 'fc1'", with that layer's parameter where it is the cause; "the images"; or "the loss" where every output is finite.
std::string first_not_finite(Module& model, const Variable& x);

/// Throws an InputError with the diagnosis above where `loss`, of `model` on `x`, is not finite; `when` is as in "at
/// step 5".
void check_finite(double loss, const std::string& when, Module& model, const Variable& x);
/// Throws an InputError that names the first parameter or buffer of `model` that is not finite after `step`.
void check_finite_state(Module& model, int64_t step);

}  // namespace tern
