#pragma once

#include "tern/kernels/update.h"

namespace tern::cpu {

void sgd_update(std::span<const kernels::ParameterUpdate> updates, const kernels::SgdSettings& settings);
void adam_update(std::span<const kernels::ParameterUpdate> updates, const kernels::AdamSettings& settings);
void average_update(std::span<const kernels::ParameterUpdate> updates, const Tensor& decay);
void squared_norm(std::span<const kernels::ParameterUpdate> updates, Tensor& sum);
void clip_scale(const Tensor& squared_norm, double max_norm, Tensor& scale);

}  // namespace tern::cpu
