#include "tern/dist/exchange/scalers.h"

#include <algorithm>

namespace tern {

std::vector<Tensor> shared_scalers(const ScaledCodec& codec, const FusedGradients& message, Communicator& communicator,
                                   ExchangeTimes& times) {
  std::vector<Tensor> each;
  int64_t count = 0;
  Tensor all;
  {
    const Stopwatch encoding(times.encode);
    for (const auto& [tag, gradient] : message) {
      each.push_back(codec.scalers(tag, gradient));
      count += each.back().numel();
    }
    all = Tensor::empty({count});
    count = 0;
    for (Tensor& scalers : each) {
      const Tensor place = all.slice(count, count + scalers.numel());
      place.copy_from(scalers);
      scalers = place;
      count += place.numel();
    }
  }
  const Stopwatch waiting(times.wait);
  communicator.all_reduce(all, Reduction::max).wait();
  return each;
}

}  // namespace tern
