#pragma once

#include "tern/dist/exchange/flat.h"

namespace tern {

/// The coded tensors of one rank's message, one after the other.
struct CodedMessage {
  Tensor bytes;                  ///< u8
  std::vector<int64_t> lengths;  ///< of each tensor's bytes
};

/// Below, `scalers` are those that all ranks share, f32 [buckets] a tensor: codes then travel alone. Where there are
/// none, each tensor is a message of `codec` with its own.
CodedMessage encode_all(GradientCodec& codec, const FusedGradients& message, const std::vector<Tensor>& scalers);
/// sums += the tensors that `coded` holds.
void decode_add_all(const GradientCodec& codec, const FusedGradients& message, const std::vector<Tensor>& scalers,
                    const CodedMessage& coded, FlatTensors& sums);

/// The lengths of every rank's tensors, by rank. They travel, as overhead, only where the codec's size is not fixed.
std::vector<std::vector<int64_t>> lengths_of_all(const GradientCodec& codec, const std::vector<int64_t>& lengths,
                                                 Communicator& communicator);

}  // namespace tern
