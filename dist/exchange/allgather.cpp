#include <numeric>

#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/scalers.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// QSGD algorithm 1: everyone's message to everyone, who decodes all of them.
class AllGather final : public Exchange {
 public:
  AllGather(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator),
        shares_(codec.shared_scale() != nullptr && codec.shared_scale()->sharing() == ScalerSharing::on) {}

  MeansToCome start(FusedGradients message) override {
    std::vector<Tensor> scalers;
    if (shares_) scalers = shared_scalers(*codec_.shared_scale(), message, communicator_, times_);
    const CodedMessage mine = encode(message, scalers);
    const auto lengths = wait_for_lengths(mine);
    std::vector<int64_t> counts;
    for (const auto& of_rank : lengths) counts.push_back(std::accumulate(of_rank.begin(), of_rank.end(), int64_t{0}));
    const Tensor all = Tensor::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, {.dtype = DType::u8});
    const Work work = communicator_.all_gather(mine.bytes, all, counts);
    return [this, message = std::move(message), scalers, lengths, counts, all, work] {
      wait(work);
      const Stopwatch decoding(times_.decode);
      FlatTensors sums = FlatTensors::zeros(message);
      int64_t begin = 0;
      for (size_t rank = 0; rank < counts.size(); begin += counts[rank++])
        decode_add_all(codec_, message, scalers, {all.slice(begin, begin + counts[rank]), lengths[rank]}, sums);
      return means(std::move(sums), communicator_.size());
    };
  }

 private:
  CodedMessage encode(const FusedGradients& message, const std::vector<Tensor>& scalers) {
    const Stopwatch encoding(times_.encode);
    return encode_all(codec_, message, scalers);
  }
  std::vector<std::vector<int64_t>> wait_for_lengths(const CodedMessage& mine) {
    const Stopwatch waiting(times_.wait);
    return lengths_of_all(codec_, mine.lengths, communicator_);
  }

  bool shares_;
};

}  // namespace

constinit const ExchangeEntry allgather_entry = {
    "allgather", "every codec", "(N-1) · n·b/8", [](const GradientCodec&) { return true; },
    [](GradientCodec& codec, Communicator& communicator) -> std::unique_ptr<Exchange> {
      return std::make_unique<AllGather>(codec, communicator);
    }};

}  // namespace tern
