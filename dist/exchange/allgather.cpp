#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// QSGD algorithm 1: everyone's message to everyone, who decodes all of them.
class AllGather final : public CodedExchange {
 public:
  using CodedExchange::CodedExchange;

  MeansToCome start(FusedGradients message) override {
    const bool shares = codec_.scaled() != nullptr && codec_.scaled()->sharing() == ScalerSharing::on;
    const Encoded mine = encode(message, shares);
    const Tensor all = Tensor::empty({mine.total}, {.dtype = DType::u8});
    const Work work = communicator_.all_gather(mine.bytes, all, mine.counts);
    return [this, message = std::move(message), mine, all, work] {
      wait(work);
      const Stopwatch decoding(times_.decode);
      FlatTensors sums = FlatTensors::zeros(message);
      for (const CodedMessage& coded : mine.split(all)) decode_add_all(codec_, message, mine.scalers, coded, sums);
      return means(std::move(sums), communicator_.size());
    };
  }
};

}  // namespace

constinit const ExchangeEntry allgather_entry = {"allgather", "every codec", "(N-1) · n·b/8",
                                                 [](const GradientCodec&) { return true; },
                                                 make_exchange_of<AllGather>};

}  // namespace tern
