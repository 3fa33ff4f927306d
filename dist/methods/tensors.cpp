#include "tern/dist/methods/tensors.h"

#include "tern/core/crc32c.h"
#include "tern/kernels/layout.h"

namespace tern {

std::vector<Tensor> clones_of(std::span<const Tensor> tensors) {
  std::vector<Tensor> clones;
  for (const Tensor& tensor : tensors) clones.push_back(tensor.clone());
  return clones;
}

std::vector<Tensor> zeros_like(std::span<const Tensor> tensors) {
  std::vector<Tensor> zeros;
  for (const Tensor& tensor : tensors) zeros.push_back(Tensor::zeros_like(tensor));
  return zeros;
}

Tensor laid_out_as(const Tensor& like, const Tensor& x) {
  if (x.format() == like.format() && x.device() == like.device()) return x;
  Tensor y = Tensor::empty_like(like);
  kernels::convert(x.to(like.device()), y);
  return y;
}

Tensor number_on(Device device, double value) { return Tensor::full({}, value, {DType::f64, device}); }

uint32_t checksum(const Tensor& tensor, uint32_t crc) {
  const Tensor here = tensor.to(Device{}).to(MemoryFormat::row_major);
  return crc32c({static_cast<const std::byte*>(here.raw_data()), here.bytes()}, crc);
}

}  // namespace tern
