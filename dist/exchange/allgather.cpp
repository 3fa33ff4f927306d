#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// QSGD algorithm 1: everyone's message to everyone, who decodes all of them.
class AllGather final : public CodedExchange {
 public:
  using CodedExchange::CodedExchange;

 protected:
  MeansToCome begin(FusedGradients message) override {
    const bool shares = codec_.scaled() != nullptr && codec_.scaled()->sharing() == ScalerSharing::on;
    const Encoded mine = encode(message, shares);
    const Tensor all = Tensor::empty({mine.total}, mine.bytes.options());
    const Work work = communicator_.all_gather(mine.bytes, all, mine.counts);
    return [this, message = std::move(message), mine, all, work] {
      wait(work);
      const Stopwatch decoding(times_.decode);
      FlatTensors sums = FlatTensors::zeros(message);
      decode_add_everyones(message, mine, all, sums);
      return means(std::move(sums), communicator_.size());
    };
  }
  bool runs_on_devices() const override { return codec_.messages() != nullptr; }
};

}  // namespace

constinit const ExchangeEntry allgather_entry = {"allgather", "every codec", "(N-1) · n·b/8",
                                                 [](const GradientCodec&) { return true; },
                                                 make_exchange_of<AllGather>};

}  // namespace tern
