#include <numeric>

#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/shards.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

/// The bytes of each shard's codes.
std::vector<int64_t> bytes_of(const GradientCodec& codec, std::span<const Shard> shards) {
  std::vector<int64_t> bytes;
  for (const Shard& shard : shards) bytes.push_back(codec.most_bytes({elements_of(shard)}));
  return bytes;
}

class ReduceScatterOfElements final : public Exchange {
 public:
  ReduceScatterOfElements(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator), elements_(messages_to_cut(codec)) {}

  bool can_be_recorded() const override { return codec_.can_be_recorded(); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    std::vector<CutTensor> tensors;
    for (const auto& [tag, gradient] : message) tensors.push_back({gradient.numel(), 1});
    const auto shards = cut_into_shards(tensors, communicator_.size());
    const auto me = static_cast<size_t>(communicator_.rank());
    Run run = {std::move(message), shards[me], bytes_of(codec_, shards)};
    // The codes of the whole message are those of the shards, in rank order.
    const auto [coming, work] = send_shards(communicator_, encode(run.message), run.bytes);
    return [this, run = std::move(run), coming = coming, work = work] {
      wait(work);
      return gather(run, encode_again(run, coming));
    };
  }
  bool runs_on_devices() const override { return true; }

 private:
  struct Run {
    FusedGradients message;
    Shard own;
    std::vector<int64_t> bytes;  ///< of each rank's shard
  };

  Tensor encode(const FusedGradients& message) {
    const Stopwatch encoding(times_.encode);
    return elements_.encode(message, {});
  }

  /// Averages this rank's shard of all ranks' codes, u8 [ranks, bytes], and encodes the mean.
  Tensor encode_again(const Run& run, const Tensor& everyones) {
    if (run.own.empty()) return everyones.reshape({0});
    FusedGradients means;
    for (const Slice& slice : run.own) {
      const auto& [tag, gradient] = run.message[slice.tensor];
      means.push_back({tag, gradient.reshape({-1}).slice(slice.begin, slice.end)});
      means.back().tag.name += " (mean)";  // a codec keeps notices by name
      means.back().tag.key.purpose = Purpose::requantize;
    }
    {
      const Stopwatch decoding(times_.decode);
      FlatTensors sums = FlatTensors::zeros(means);
      decoded(codec_, means, [&] { elements_.decode_add(everyones, {}, sums.parts); });
      kernels::scale(sums.whole, 1.0 / communicator_.size(), sums.whole);
      for (size_t i = 0; i < means.size(); ++i) means[i].gradient = sums.parts[i];
    }
    return encode(means);
  }

  /// Brings the coded means of all shards to all ranks, and decodes them.
  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    const int64_t bytes = std::accumulate(run.bytes.begin(), run.bytes.end(), int64_t{0});
    Tensor all = Tensor::empty({1, bytes}, mine.options());
    wait(communicator_.all_gather(mine, all, run.bytes));
    const Stopwatch decoding(times_.decode);
    FlatTensors means = FlatTensors::zeros(run.message);
    decoded(codec_, run.message, [&] { elements_.decode_add(all, {}, means.parts); });
    return std::move(means.parts);
  }

  MessageCodec& elements_;
};

}  // namespace

std::unique_ptr<Exchange> make_reduce_scatter_of_elements(GradientCodec& codec, Communicator& communicator) {
  return std::make_unique<ReduceScatterOfElements>(codec, communicator);
}

ExchangePlan plan_reduce_scatter_of_elements(const GradientCodec& codec, std::span<const CodedTensor> message,
                                             int ranks) {
  std::vector<CutTensor> tensors;
  for (const CodedTensor& tensor : message) tensors.push_back({tensor.shape.numel(), 1});
  const auto bytes = bytes_of(codec, cut_into_shards(tensors, ranks));
  const auto n = static_cast<double>(elements_of(message));
  return {{{.encoded = n, .wire = all_to_all_load(bytes), .decoded = n},
           {.encoded = n / ranks, .wire = all_gather_load(bytes), .decoded = n}}};
}

}  // namespace tern
