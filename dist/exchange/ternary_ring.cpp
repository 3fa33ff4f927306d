#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/hop_ring.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// TernGrad with shared scalers, around a ring: the sum of k ranks' codes travels as whole numbers within ±k.
class TernaryRing final : public HopRing {
 public:
  using HopRing::HopRing;

 private:
  Summands summands(const FusedGradients& message) override {
    const FlatTensors scalers = shared_scalers(codec_, message, communicator_, times_);
    const Stopwatch encoding(times_.encode);
    Summands summands = {FlatTensors::zeros(message), scalers.parts};
    add_integers(codec_, message, encode_all(codec_, message, scalers), summands.own);
    return summands;
  }
  Tensor encode(const GradientTag&, const Tensor& sum, int ranks) override { return pack_integers(sum, ranks); }
  int64_t bytes(int64_t count, int ranks) const override { return packed_integer_bytes(count, ranks); }
  void decode_add(const GradientTag&, const Tensor& codes, int ranks, Tensor& sum) const override {
    add_packed_integers(codes, ranks, sum);
  }
  std::vector<Tensor> means_of(Summands sums) override {
    return means_of_integers(*codec_.scaled(), sums.scalers, std::move(sums.own), communicator_.size());
  }
  bool runs_on_devices() const override { return codes_on_devices(codec_); }
};

ExchangePlan plan_ternary_ring(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks,
                               SpecParameters&) {
  const int64_t n = elements_of(message);
  ExchangePlan plan = plan_hop_ring(n, ranks, packed_integer_bytes);
  plan.phases.front().encoded += static_cast<double>(n);
  plan.phases.insert(plan.phases.begin(), plan_scalers(codec, message, ranks));
  plan.under_way = 1;
  return plan;
}

}  // namespace

constinit const ExchangeEntry ternary_ring_entry = {
    "ternary-ring",
    "ternary with share=auto or on",
    "n/8N · ⌈log2(2k+1)⌉ in each hop k = 1 to N-1, then (N-1) · n/8N · ⌈log2(2N+1)⌉",
    sums_integers,
    make_exchange_of<TernaryRing>,
    plan_ternary_ring};

}  // namespace tern
