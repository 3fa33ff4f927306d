#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// Rank 0 is the parameter server. It takes the messages of all N ranks, also its own. It sends the sum to each rank.
/// If codes can be summed (TernGrad section 3.1), the sum travels as whole numbers from -N to N. Otherwise the sum
/// travels as floats.
class Server final : public CodedExchange {
 public:
  using CodedExchange::CodedExchange;

 protected:
  MeansToCome begin(FusedGradients message) override {
    const Encoded mine = encode(message, sums_integers(codec_));
    Tensor all = Tensor::empty({is_server() ? mine.total : 0}, mine.bytes.options());
    const Work work = communicator_.gather(mine.bytes, all, 0, mine.counts);
    return [this, message = std::move(message), mine, all, work] {
      wait(work);
      FlatTensors sums = FlatTensors::zeros(message);
      if (is_server()) add_everyones(message, mine, all, sums);
      return sums_integers(codec_) ? send_integers(mine.scalers.parts, std::move(sums)) : send_floats(std::move(sums));
    };
  }
  bool runs_on_devices() const override { return codes_on_devices(codec_); }

 private:
  bool is_server() const { return communicator_.rank() == 0; }

  void add_everyones(const FusedGradients& message, const Encoded& mine, const Tensor& all, FlatTensors& sums) {
    const Stopwatch decoding(times_.decode);
    if (!sums_integers(codec_)) return decode_add_everyones(message, mine, all, sums);
    for (const CodedMessage& coded : mine.split(all)) add_integers(codec_, message, coded, sums);
  }

  std::vector<Tensor> send_floats(FlatTensors sums) {
    wait(communicator_.fan_out(sums.whole, 0));
    const Stopwatch decoding(times_.decode);
    return means(std::move(sums), communicator_.size());
  }

  std::vector<Tensor> send_integers(const std::vector<Tensor>& scalers, FlatTensors sums) {
    const int n = communicator_.size();
    Tensor packed = [&] {
      const Stopwatch encoding(times_.encode);
      return is_server() ? pack_integers(sums.whole, n)
                         : Tensor::empty({packed_integer_bytes(sums.whole.numel(), n)},
                                         {.dtype = DType::u8, .device = sums.whole.device()});
    }();
    wait(communicator_.fan_out(packed, 0));
    const Stopwatch decoding(times_.decode);
    if (!is_server()) add_packed_integers(packed, n, sums.whole);
    return means_of_integers(*codec_.scaled(), scalers, std::move(sums), n);
  }
};

ExchangePlan plan_server(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks, SpecParameters&) {
  const bool integers = sums_integers(codec);
  CodedPlan coded = plan_coded(codec, message, ranks, integers);
  coded.plan.phases.back().wire = gather_load(coded.counts);
  coded.plan.phases.back().decoded = ranks * coded.elements;
  const auto n = static_cast<int64_t>(coded.elements);
  const std::vector<int64_t> back(static_cast<size_t>(ranks), integers ? packed_integer_bytes(n, ranks) : 4 * n);
  coded.plan.phases.push_back(
      {.encoded = integers ? coded.elements : 0, .wire = scatter_load(back), .decoded = coded.elements});
  return coded.plan;
}

}  // namespace

constinit const ExchangeEntry server_entry = {
    "server",
    "every codec",
    "n·b/8 up; rank 0: (N-1) · n·⌈log2(2N+1)⌉/8 down if codes are summed, otherwise (N-1) · 4n",
    [](const GradientCodec&) { return true; },
    make_exchange_of<Server>,
    plan_server};

}  // namespace tern
