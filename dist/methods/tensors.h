#pragma once

#include <span>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

// Helpers of the methods, for lists of tensors and their layout.

std::vector<Tensor> clones_of(std::span<const Tensor> tensors);
/// Tensors of zeros with the same shapes, formats and devices.
std::vector<Tensor> zeros_like(std::span<const Tensor> tensors);
/// x with the memory format and the device of `like`: x itself if it has them, otherwise a copy.
Tensor laid_out_as(const Tensor& like, const Tensor& x);
/// A number as kernels::SgdSettings takes it: f64, rank 0.
Tensor number_on(Device device, double value);
/// The CRC-32C of the tensor's bytes in row-major order, on any device, continued from `crc`.
uint32_t checksum(const Tensor& tensor, uint32_t crc);

}  // namespace tern
