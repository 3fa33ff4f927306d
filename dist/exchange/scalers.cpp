#include "tern/dist/exchange/scalers.h"

#include "tern/kernels/codec.h"

namespace tern {
namespace {

FlatTensors own_scalers(const GradientCodec& codec, const FusedGradients& message) {
  const int64_t bucket = codec.scaled()->bucket();
  int64_t count = 0;
  for (const auto& [tag, gradient] : message) count += kernels::bucket_count(gradient.numel(), bucket);
  FlatTensors scalers = {codec.messages() != nullptr ? codec.messages()->scalers(message) : Tensor::empty({count}), {}};
  count = 0;
  for (const auto& [tag, gradient] : message) {
    const int64_t end = count + kernels::bucket_count(gradient.numel(), bucket);
    scalers.parts.push_back(scalers.whole.slice(count, end));
    if (codec.messages() == nullptr) scalers.parts.back().copy_from(codec.scaled()->scalers(tag, gradient));
    count = end;
  }
  return scalers;
}

}  // namespace

FlatTensors shared_scalers(const GradientCodec& codec, const FusedGradients& message, Communicator& communicator,
                           ExchangeTimes& times) {
  const FlatTensors scalers = [&] {
    const Stopwatch encoding(times.encode);
    return own_scalers(codec, message);
  }();
  const Stopwatch waiting(times.wait);
  communicator.all_reduce(scalers.whole, Reduction::max).wait();
  return scalers;
}

ExchangePhase plan_scalers(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks) {
  int64_t scalers = 0;
  for (const CodedTensor& tensor : message)
    scalers += kernels::bucket_count(tensor.shape.numel(), codec.scaled()->bucket());
  return {.wire = all_reduce_load(4 * scalers, ranks)};
}

}  // namespace tern
