#pragma once

#include "tern/dist/exchange.h"

namespace tern {

/// The scalers of each tensor, f32 [buckets], each the largest of all ranks': one all-reduce of the message's
/// (TernGrad eq. 4).
std::vector<Tensor> shared_scalers(const ScaledCodec& codec, const FusedGradients& message, Communicator& communicator,
                                   ExchangeTimes& times);

}  // namespace tern
