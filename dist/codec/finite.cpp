#include "tern/dist/codec/finite.h"

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"
#include "tern/kernels/codec.h"

namespace tern {

Tensor finite_statistics(const GradientTag& tag, const Tensor& gradient, int64_t bucket) {
  Tensor statistics = Tensor::empty({kernels::bucket_count(gradient.numel(), bucket), 3}, {.dtype = DType::f64});
  const kernels::MeasuredGradient measured = {gradient, statistics};
  kernels::gradient_statistics({&measured, 1}, bucket);
  const auto values = statistics.span<double>();
  for (size_t b = 0; b < values.size(); b += 3)
    check_input(std::isfinite(values[b + 2]), "gradient of '", tag.name, "' has NaN or infinite elements");
  return statistics;
}

void check_finite(const GradientTag& tag, std::span<const float> numbers) {
  check_input(std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); }), "gradient of '", tag.name,
              "' has NaN or infinite elements, or a norm beyond f32");
}

void check_scalers(std::span<const float> scalers) {
  check(std::ranges::all_of(scalers, [](float s) { return std::isfinite(s) && s >= 0; }),
        "message holds a scaler that is negative or not finite");
}

}  // namespace tern
