#include "tern/dist/codec/fused_gradients.h"

#include <utility>

#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

FlatTensors flat(std::span<const Tensor> tensors, Tensor (*make)(const Shape&, const TensorOptions&)) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  FlatTensors flat = {make({count}, {.device = tensors.front().device()}), {}};
  int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    flat.parts.push_back(flat.whole.slice(begin, begin + tensor.numel()).reshape(tensor.shape()));
    begin += tensor.numel();
  }
  return flat;
}

}  // namespace

std::vector<Tensor> tensors_of(const FusedGradients& message) {
  std::vector<Tensor> tensors;
  for (const auto& [tag, gradient] : message) tensors.push_back(gradient);
  return tensors;
}

GradientTag tag_of(const FusedGradients& message) {
  GradientTag tag = message.front().tag;
  if (message.size() > 1) tag.name += " to " + message.back().tag.name;
  return tag;
}

Tensor difference(const Tensor& gradient, const Tensor& minus) {
  Tensor result = Tensor::empty_like(gradient);
  kernels::subtract(gradient, minus, result);
  return result;
}

FusedGradients differences(FusedGradients message, std::span<const Tensor> minus) {
  for (size_t i = 0; i < message.size(); ++i)
    if (minus[i].defined()) message[i].gradient = difference(message[i].gradient, minus[i]);
  return message;
}

FlatTensors FlatTensors::zeros(std::span<const Tensor> tensors) { return flat(tensors, Tensor::zeros); }

FlatTensors FlatTensors::zeros(const FusedGradients& message) { return zeros(tensors_of(message)); }

FlatTensors FlatTensors::copy(const FusedGradients& message, std::span<const Tensor> minus) {
  FlatTensors copies = flat(tensors_of(message), Tensor::empty);
  for (size_t i = 0; i < message.size(); ++i) {
    if (i < minus.size() && minus[i].defined())
      kernels::subtract(message[i].gradient, minus[i], copies.parts[i]);
    else if (message[i].gradient.format() == MemoryFormat::row_major)
      copies.parts[i].copy_from(message[i].gradient);
    else
      kernels::convert(message[i].gradient, copies.parts[i]);
  }
  return copies;
}

std::vector<Tensor> means(FlatTensors sums, int ranks) {
  kernels::scale(sums.whole, 1.0 / ranks, sums.whole);
  return std::move(sums.parts);
}

}  // namespace tern
