#include "tern/dist/exchange/flat.h"

#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

FlatTensors flat(const FusedGradients& message, Tensor (*make)(const Shape&, const TensorOptions&)) {
  int64_t count = 0;
  for (const auto& [tag, gradient] : message) count += gradient.numel();
  FlatTensors flat = {make({count}, {.device = message.front().gradient.device()}), {}};
  int64_t begin = 0;
  for (const auto& [tag, gradient] : message) {
    flat.parts.push_back(flat.whole.slice(begin, begin + gradient.numel()).reshape(gradient.shape()));
    begin += gradient.numel();
  }
  return flat;
}

}  // namespace

FlatTensors FlatTensors::zeros(const FusedGradients& message) { return flat(message, Tensor::zeros); }

FlatTensors FlatTensors::copy(const FusedGradients& message) {
  FlatTensors copies = flat(message, Tensor::empty);
  for (size_t i = 0; i < message.size(); ++i) copies.parts[i].copy_from(message[i].gradient);
  return copies;
}

std::vector<Tensor> means(FlatTensors sums, int ranks) {
  kernels::scale(sums.whole, 1.0 / ranks, sums.whole);
  return std::move(sums.parts);
}

}  // namespace tern
