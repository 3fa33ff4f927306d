#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/hop_ring.h"
#include "tern/dist/exchange/table.h"

namespace tern {
namespace {

/// Sends floats unchanged, through the communicator's all-reduce.
class FloatRing final : public Exchange {
 public:
  using Exchange::Exchange;
  bool can_be_recorded() const override { return true; }

 protected:
  MeansToCome begin(FusedGradients message) override { return begin_difference(std::move(message), {}); }
  MeansToCome begin_difference(FusedGradients message, std::vector<Tensor> minus) override {
    FlatTensors sums = copy(message, minus);
    return [this, sums, work = communicator_.all_reduce(sums.whole)] {
      wait(work);
      const Stopwatch decoding(times_.decode);
      return means(sums, communicator_.size());
    };
  }
  bool runs_on_devices() const override { return true; }

 private:
  FlatTensors copy(const FusedGradients& message, std::span<const Tensor> minus) {
    const Stopwatch encoding(times_.encode);
    return FlatTensors::copy(message, minus);
  }
};

/// Sends 16 bits per element; every hop adds them to a sum in f32.
class HalfRing final : public HopRing {
 public:
  using HopRing::HopRing;
  bool can_be_recorded() const override { return codec_.can_be_recorded(); }

 private:
  Summands summands(const FusedGradients& message) override {
    const Stopwatch encoding(times_.encode);
    return {FlatTensors::copy(message), {}};
  }
  Tensor encode(const GradientTag& tag, const Tensor& sum, int) override {
    return encode_all(codec_, {{tag, sum}}, {}).bytes;
  }
  int64_t bytes(int64_t count, int) const override { return codec_.most_bytes({count}); }
  void decode_add(const GradientTag&, const Tensor& codes, int, Tensor& sum) const override {
    codec_.messages()->decode_add(codes.reshape({1, codes.numel()}), {}, {&sum, 1});
  }
  std::vector<Tensor> means_of(Summands sums) override { return means(std::move(sums.own), communicator_.size()); }
  bool runs_on_devices() const override { return true; }
};

ExchangePlan plan_ring(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks, SpecParameters&) {
  const int64_t n = elements_of(message);
  if (codec.traits().promise != CodecPromise::exact)
    return plan_hop_ring(n, ranks, [&](int64_t count, int) { return codec.most_bytes({count}); });
  const auto elements = static_cast<double>(n);
  return {{{.encoded = elements, .wire = all_reduce_load(4 * n, ranks), .decoded = elements}}};
}

bool is_float(const GradientCodec& codec) {
  const std::string spec = codec.spec();
  return spec == "none" || spec == "fp16" || spec == "bf16";
}

}  // namespace

constinit const ExchangeEntry ring_entry = {
    "ring",
    "none, fp16 and bf16",
    "2(N-1)/N · n·b/8",
    is_float,
    [](GradientCodec& codec, Communicator& communicator, SpecParameters&) -> std::unique_ptr<Exchange> {
      if (codec.traits().promise == CodecPromise::exact) return std::make_unique<FloatRing>(codec, communicator);
      return std::make_unique<HalfRing>(codec, communicator);
    },
    plan_ring};

}  // namespace tern
