#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// QSGD algorithm 1: every rank sends its message to all ranks, and every rank decodes all messages.
class AllGather final : public CodedExchange {
 public:
  using CodedExchange::CodedExchange;

 protected:
  MeansToCome begin(FusedGradients message) override {
    const bool shares = codec_.scaled() != nullptr && codec_.scaled()->sharing() == ScalerSharing::on;
    const Encoded mine = encode(message, shares);
    Tensor all = Tensor::empty({mine.total}, mine.bytes.options());
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

ExchangePlan plan_allgather(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks) {
  const bool shares = codec.scaled() != nullptr && codec.scaled()->sharing() == ScalerSharing::on;
  CodedPlan coded = plan_coded(codec, message, ranks, shares);
  coded.plan.phases.back().wire = all_gather_load(coded.counts);
  coded.plan.phases.back().decoded = ranks * coded.elements;
  return coded.plan;
}

}  // namespace

constinit const ExchangeEntry allgather_entry = {"allgather",
                                                 "every codec",
                                                 "(N-1) · n·b/8",
                                                 [](const GradientCodec&) { return true; },
                                                 make_exchange_of<AllGather>,
                                                 plan_allgather};

}  // namespace tern
