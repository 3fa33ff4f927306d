#pragma once

#include "tern/dist/exchange/flat.h"
#include "tern/dist/exchange_plan.h"

namespace tern {

/// f32 [buckets] for each tensor, on the CPU, each the largest of all ranks': one all-reduce of the message's (TernGrad
/// eq. 4).
FlatTensors shared_scalers(const GradientCodec& codec, const FusedGradients& message, Communicator& communicator,
                           ExchangeTimes& times);

/// That all-reduce.
ExchangePhase plan_scalers(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks);

}  // namespace tern
