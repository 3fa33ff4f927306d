#include <numeric>

#include "tern/dist/exchange/flat.h"
#include "tern/dist/exchange/scalers.h"
#include "tern/dist/exchange/shards.h"
#include "tern/dist/exchange/table.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

Tensor tensor_of(const std::vector<std::byte>& bytes) {
  return Tensor::from<uint8_t>({static_cast<int64_t>(bytes.size())},
                               {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

ByteReader reader_of(const Tensor& bytes) { return ByteReader(std::as_bytes(bytes.span<uint8_t>())); }

/// Rank r takes shard r of every rank's codes, averages it, codes the mean again, scaled by its largest magnitude, and
/// sends that to everyone.
class ReduceScatter final : public Exchange {
 public:
  ReduceScatter(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator), slices_(*codec.scaled()), again_(codec.scaled()->for_sums()) {}

 protected:
  MeansToCome begin(FusedGradients message) override {
    const auto n = static_cast<size_t>(communicator_.size()), me = static_cast<size_t>(communicator_.rank());
    Run run = {std::move(message), {}, {}};
    if (slices_.shares()) run.scalers = shared_scalers(codec_, run.message, communicator_, times_).parts;
    std::vector<int64_t> elements;
    for (const auto& [tag, gradient] : run.message) elements.push_back(gradient.numel());
    run.shards = cut_into_shards(elements, communicator_.size(), codec_.scaled()->granule());
    std::vector<int64_t> sends(n);
    for (size_t r = 0; r < n; ++r)
      for (const Slice& slice : run.shards[r]) sends[r] += slices_.bytes(slice);
    const std::vector<int64_t> receives(n, sends[me]);
    const Tensor coming = Tensor::empty({communicator_.size() * sends[me]}, {.dtype = DType::u8});
    const Work work = communicator_.all_to_all(encode(run), sends, coming, receives);
    return [this, run = std::move(run), coming, work, me] {
      wait(work);
      return gather(run, encode_again(run, run.shards[me], coming));
    };
  }

 private:
  struct Run {
    FusedGradients message;
    std::vector<Tensor> scalers;  // where ranks share them
    std::vector<Shard> shards;
  };

  /// All shards in rank order.
  Tensor encode(const Run& run) {
    const Stopwatch encoding(times_.encode);
    std::vector<Tensor> scalers = run.scalers;
    std::vector<std::vector<std::byte>> codes(run.message.size());
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto& [tag, gradient] = run.message[i];
      if (!slices_.shares()) scalers.push_back(codec_.scaled()->scalers(tag, gradient));
      if (gradient.numel() != 0) codec_.scaled()->append_codes(tag, gradient, scalers[i], codes[i]);
    }
    std::vector<std::byte> bytes;
    for (const Shard& shard : run.shards)
      for (const Slice& slice : shard) slices_.append(slice, scalers[slice.tensor], codes[slice.tensor], bytes);
    return tensor_of(bytes);
  }

  Tensor encode_again(const Run& run, const Shard& shard, const Tensor& everyones) {
    std::vector<Tensor> sums;
    for (const Slice& slice : shard) sums.push_back(Tensor::zeros({slice.count()}));
    {
      const Stopwatch decoding(times_.decode);
      ByteReader bytes = reader_of(everyones);
      for (int r = 0; r < communicator_.size(); ++r)
        for (size_t k = 0; k < shard.size(); ++k)
          slices_.add(shard[k], slices_.shares() ? run.scalers[shard[k].tensor] : Tensor(), bytes, sums[k]);
    }
    const Stopwatch encoding(times_.encode);
    std::vector<std::byte> bytes;
    for (size_t k = 0; k < shard.size(); ++k) {
      kernels::scale(sums[k], 1.0 / communicator_.size(), sums[k]);
      GradientTag tag = run.message[shard[k].tensor].tag;
      tag.key.purpose = Purpose::requantize;
      again_->encode(tag, sums[k], bytes);
    }
    return tensor_of(bytes);
  }

  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    std::vector<int64_t> counts(run.shards.size());
    for (size_t r = 0; r < counts.size(); ++r)
      for (const Slice& slice : run.shards[r]) counts[r] += again_->most_bytes({slice.count()});
    const Tensor all = Tensor::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, {.dtype = DType::u8});
    wait(communicator_.all_gather(mine, all, counts));
    const Stopwatch decoding(times_.decode);
    FlatTensors means = FlatTensors::zeros(run.message);
    ByteReader bytes = reader_of(all);
    for (const Shard& shard : run.shards) {
      for (const Slice& slice : shard) {
        Tensor part = means.parts[slice.tensor].reshape({-1}).slice(slice.begin, slice.end);
        again_->decode_add(run.message[slice.tensor].tag,
                           bytes.take(static_cast<size_t>(again_->most_bytes({slice.count()}))), part);
      }
    }
    return means.parts;
  }

  SliceCodec slices_;
  std::unique_ptr<GradientCodec> again_;
};

bool can_be_cut(const GradientCodec& codec) {
  const ScaledCodec* const scaled = codec.scaled();
  return scaled != nullptr && scaled->granule() != 0 && scaled->bucket() % scaled->granule() == 0;
}

/// Each shard's bytes, of codes with their scalers, then of means coded again.
ExchangePlan plan(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks) {
  const SliceCodec slices(*codec.scaled());
  const auto again = codec.scaled()->for_sums();
  std::vector<int64_t> elements, codes, means;
  for (const CodedTensor& tensor : message) elements.push_back(tensor.shape.numel());
  for (const Shard& shard : cut_into_shards(elements, ranks, codec.scaled()->granule())) {
    codes.push_back(0);
    means.push_back(0);
    for (const Slice& slice : shard) {
      codes.back() += slices.bytes(slice);
      means.back() += again->most_bytes({slice.count()});
    }
  }
  const auto n = static_cast<double>(std::accumulate(elements.begin(), elements.end(), int64_t{0}));
  ExchangePlan plan;
  if (slices.shares()) plan.phases.push_back(plan_scalers(codec, message, ranks));
  plan.under_way = plan.phases.size();
  plan.phases.push_back({.encoded = n, .wire = all_to_all_load(codes), .decoded = n});
  plan.phases.push_back({.encoded = n / ranks, .wire = all_gather_load(means), .decoded = n});
  return plan;
}

}  // namespace

constinit const ExchangeEntry reduce_scatter_entry = {
    "reduce-scatter",
    "ternary (2bit or 5trit) and qsgd (fixed), with a bucket of whole bytes: a multiple of 32 (5trit: 5)",
    "2(N-1)/N · n·b/8",
    can_be_cut,
    make_exchange_of<ReduceScatter>,
    plan};

}  // namespace tern
