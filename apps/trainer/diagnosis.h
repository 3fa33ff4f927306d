#pragma once

#include <string>

#include "tern/layers/module.h"

namespace tern {

/// Runs `model` forward on `x` once more and says where a number that is not finite first appears: "the output of layer
/// 'fc1'", with that layer's parameter where it is the cause; "the images"; or "the loss" where every output is finite.
std::string first_not_finite(Module& model, const Variable& x);

}  // namespace tern
