#include "tern/optim/step_number.h"

#include "tern/kernels/layout.h"

namespace tern {

void StepNumber::set(double value, Device device) {
  const bool here = tensor_.defined() && tensor_.device() == device;
  if (here && value_ == value) return;
  if (!here) tensor_ = Tensor::empty({}, {.dtype = DType::f64, .device = device});
  kernels::fill(tensor_, value);
  value_ = value;
}

}  // namespace tern
