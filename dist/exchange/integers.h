#pragma once

#include "tern/dist/exchange/coded.h"

namespace tern {

/// Whether codes of several ranks can be summed: all must use the same scalers.
bool sums_integers(const GradientCodec& codec);

/// sums += the codes of `coded` as the whole numbers that they are.
void add_integers(const GradientCodec& codec, const FusedGradients& message, const CodedMessage& coded,
                  FlatTensors& sums);

/// Whole numbers within ±most, in ⌈log2(2·most + 1)⌉ bits each: kernels::code_bytes.
int64_t packed_integer_bytes(int64_t count, int64_t most);
/// x: f32 [count]. u8 [packed_integer_bytes].
Tensor pack_integers(const Tensor& x, int64_t most);
/// sum += the numbers.
void add_packed_integers(const Tensor& packed, int64_t most, Tensor& sum);

/// From the sums of `ranks` ranks' codes, each tensor's in units of its buckets' scalers.
std::vector<Tensor> means_of_integers(const ScaledCodec& codec, const std::vector<Tensor>& scalers, FlatTensors sums,
                                      int ranks);

}  // namespace tern
