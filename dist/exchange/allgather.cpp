#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

/// QSGD algorithm 1: every rank sends its message to all ranks, and every rank decodes all messages.
class AllGather : public CodedExchange {
 public:
  using CodedExchange::CodedExchange;
  bool can_be_recorded() const override { return codec_.can_be_recorded(); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    const Encoded mine = encode(message, shares_scalers(codec_));
    return gather(std::move(message), mine);
  }
  MeansToCome begin_difference(FusedGradients message, std::vector<Tensor> minus) override {
    if (codec_.messages() == nullptr || codec_.scaled() != nullptr)
      return CodedExchange::begin_difference(std::move(message), std::move(minus));
    const Encoded mine = encode_difference(message, minus);
    return gather(std::move(message), mine);
  }
  bool runs_on_devices() const override { return codes_on_devices(codec_); }
  virtual kernels::MeanOver over() const { return kernels::MeanOver::messages; }
  /// The means of the messages of all ranks, whose bytes `all` holds, if the codec has no way of its own to them.
  virtual std::vector<Tensor> means_of(const FusedGradients& message, const Encoded& mine, const Tensor& all) const {
    FlatTensors sums = FlatTensors::zeros(message);
    decode_add_everyones(message, mine, all, sums);
    return means(std::move(sums), communicator_.size());
  }

 private:
  MeansToCome gather(FusedGradients message, const Encoded& mine) {
    Tensor all = Tensor::empty({mine.total}, mine.bytes.options());
    const Work work = communicator_.all_gather(mine.bytes, all, mine.counts);
    return [this, message = std::move(message), mine, all, work] {
      wait(work);
      const Stopwatch decoding(times_.decode);
      auto means = means_by_codec(message, mine, all, over());
      return means.empty() ? means_of(message, mine, all) : means;
    };
  }
};

/// The same for sparse codecs; but an element becomes the mean over the ranks that sent it, those that decode it to a
/// number other than 0 (SparseLoCo's and DeMo's code). An element that nobody sent becomes 0.
class AllGatherSent final : public AllGather {
 public:
  using AllGather::AllGather;

 private:
  kernels::MeanOver over() const override { return kernels::MeanOver::senders; }
  std::vector<Tensor> means_of(const FusedGradients& message, const Encoded& mine, const Tensor& all) const override {
    FlatTensors sums = FlatTensors::zeros(message);
    FlatTensors one = FlatTensors::zeros(message);
    Tensor senders = Tensor::zeros(sums.whole.shape(), sums.whole.options());
    for (const CodedMessage& coded : mine.split(all)) {
      kernels::fill(one.whole, 0);
      decode_add_all(codec_, message, mine.scalers, coded, one);
      kernels::accumulate_nonzero(one.whole, sums.whole, senders);
    }
    kernels::clamp(senders, {.low = 1, .high = static_cast<double>(communicator_.size())}, senders);
    kernels::divide(sums.whole, senders, sums.whole);
    return std::move(sums.parts);
  }
};

ExchangePlan plan_allgather(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks,
                            SpecParameters&) {
  CodedPlan coded = plan_coded(codec, message, ranks, shares_scalers(codec));
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

constinit const ExchangeEntry allgather_sent_entry = {
    "allgather-sent", "topk, topk-block and error-feedback:randk: the mean is over the ranks that sent an element",
    "(N-1) · n·b/8",
    // An unbiased codec is so over all ranks.
    [](const GradientCodec& codec) {
      return codec.traits().sparse && codec.traits().promise != CodecPromise::unbiased;
    },
    make_exchange_of<AllGatherSent>, plan_allgather};

}  // namespace tern
