#pragma once

#include <cstdint>
#include <span>

#include "tern/core/tensor.h"

namespace tern {

/// What vectors have independent elements of, around 0; `constant`: 1 or −1, where Lemma 3.1 of QSGD is nearly tight.
enum class Distribution : uint8_t { gauss, uniform, laplace, constant };

std::span<const Distribution> distributions();
const char* to_string(Distribution distribution);

/// f32 [n].
Tensor drawn_vector(Distribution distribution, int64_t n, uint64_t seed);

}  // namespace tern
