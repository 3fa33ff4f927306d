#include <numeric>
#include <utility>

#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/shards.h"
#include "tern/dist/exchange/table.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

std::vector<CutTensor> tensors_of(const ScaledCodec& codec, const FusedGradients& message) {
  std::vector<CutTensor> tensors;
  for (const auto& [tag, gradient] : message) tensors.push_back({gradient.numel(), codec.granule()});
  return tensors;
}

/// The place of a shard in a coded message, which has the scalers of all tensors first, one for each bucket, and then
/// the codes of all tensors. A shard has no gaps, so neither do its scalers and its codes.
struct ShardPlace {
  int64_t first_scaler = 0, last_scaler = 0, first_byte = 0, last_byte = 0;

  ShardPlace(const ScaledCodec& codec, std::span<const CutTensor> tensors, const Shard& shard) {
    if (shard.empty()) return;
    const int64_t width = codec.bucket();
    size_t next = 0;
    int64_t scaler = 0, byte = 0;
    const auto go_to = [&](size_t tensor) {
      for (; next < tensor; ++next) {
        scaler += kernels::bucket_count(tensors[next].count, width);
        byte += codec.code_bytes(tensors[next].count);
      }
    };
    go_to(shard.front().tensor);
    first_scaler = scaler + (width == 0 ? 0 : shard.front().begin / width);
    first_byte = byte + codec.code_bytes(shard.front().begin);
    go_to(shard.back().tensor);
    last_scaler = scaler + kernels::bucket_count(shard.back().end, width);
    last_byte = byte + codec.code_bytes(shard.back().end);
  }

  int64_t code_bytes() const { return last_byte - first_byte; }
  /// Bytes of a message of this shard alone.
  int64_t bytes(const GradientCodec& codec) const {
    return code_bytes() + (shares_scalers(codec) ? 0 : 4 * (last_scaler - first_scaler));
  }
};

/// The parts of a shard that have buckets of their own: its slices, but if a slice begins within a bucket, the rest of
/// that bucket is a part. `sum` holds the shard's elements.
std::vector<Tensor> parts_of(const Shard& shard, int64_t bucket, const Tensor& sum) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const Slice& slice : shard) {
    const int64_t end = at + slice.count(), begun = bucket == 0 ? 0 : slice.begin % bucket;
    const int64_t rest = begun == 0 ? at : std::min(at + bucket - begun, end);
    if (at < rest) parts.push_back(sum.slice(at, rest));
    if (rest < end) parts.push_back(sum.slice(rest, end));
    at = end;
  }
  return parts;
}

/// The slices of a shard, with the tags of their tensors, as a message of means. `values` holds the shard's elements.
FusedGradients slices_of(const Shard& shard, const FusedGradients& message, const Tensor& values) {
  FusedGradients slices;
  int64_t at = 0;
  for (const Slice& slice : shard) {
    slices.push_back({message[slice.tensor].tag, values.slice(at, at + slice.count())});
    slices.back().tag.key.purpose = Purpose::requantize;
    at += slice.count();
  }
  return slices;
}

/// Rank r receives shard r of every rank's codes, averages it, and encodes the mean again, with the largest magnitude
/// as scaler. Then it sends the coded mean to all ranks.
class ReduceScatter final : public Exchange {
 public:
  ReduceScatter(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator),
        scaled_(*codec.scaled()),
        messages_(messages_to_cut(codec)),
        again_(scaled_.for_sums()) {}

  void confirm(int64_t steps) const override {
    codec_.confirm(steps);
    again_->confirm(steps);
  }
  bool can_be_recorded() const override { return codec_.can_be_recorded(); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    Run run = {std::move(message), {}, {}, {}};
    if (shares_scalers(codec_)) run.scalers = shared_scalers(codec_, run.message, communicator_, times_);
    const auto tensors = tensors_of(scaled_, run.message);
    run.shards = cut_into_shards(tensors, communicator_.size());
    std::vector<int64_t> bytes;
    for (const Shard& shard : run.shards) {
      run.places.emplace_back(scaled_, tensors, shard);
      bytes.push_back(run.places.back().bytes(codec_));
    }
    const auto [coming, work] = send_shards(communicator_, encode(run), bytes);
    return [this, run = std::move(run), coming = coming, work = work] {
      wait(work);
      return gather(run, encode_again(run, coming));
    };
  }
  bool runs_on_devices() const override { return true; }

 private:
  struct Run {
    FusedGradients message;
    FlatTensors scalers;  // if ranks share them
    std::vector<Shard> shards;
    std::vector<ShardPlace> places;
  };

  /// Encodes the shards of all ranks, in rank order: u8 [bytes].
  Tensor encode(const Run& run) {
    const Stopwatch encoding(times_.encode);
    const Tensor whole = messages_.encode(run.message, run.scalers.whole);
    if (shares_scalers(codec_)) return whole;
    int64_t bytes = 0, codes_at = whole.numel();
    for (const ShardPlace& place : run.places) {
      bytes += place.bytes(codec_);
      codes_at -= place.code_bytes();
    }
    Tensor shards = Tensor::empty({bytes}, whole.options());
    int64_t at = 0;
    const auto put = [&](int64_t begin, int64_t end) {
      Tensor target = shards.slice(at, at + end - begin);
      target.copy_from(whole.slice(begin, end));
      at += end - begin;
    };
    for (const ShardPlace& place : run.places) {
      put(4 * place.first_scaler, 4 * place.last_scaler);
      put(codes_at + place.first_byte, codes_at + place.last_byte);
    }
    return shards;
  }

  /// Averages this rank's shard of all ranks' codes, u8 [ranks, bytes], and encodes the mean.
  Tensor encode_again(const Run& run, const Tensor& everyones) {
    const auto me = static_cast<size_t>(communicator_.rank());
    const Shard& shard = run.shards[me];
    if (shard.empty()) return everyones.reshape({0});
    Tensor mean = Tensor::zeros({elements_of(shard)}, {.device = everyones.device()});
    const FusedGradients slices = slices_of(shard, run.message, mean);
    {
      const Stopwatch decoding(times_.decode);
      const ShardPlace& place = run.places[me];
      const Tensor scalers =
          shares_scalers(codec_) ? run.scalers.whole.slice(place.first_scaler, place.last_scaler) : Tensor();
      decoded(codec_, slices,
              [&] { messages_.decode_add(everyones, scalers, parts_of(shard, scaled_.bucket(), mean)); });
      kernels::scale(mean, 1.0 / communicator_.size(), mean);
    }
    const Stopwatch encoding(times_.encode);
    return again_->messages()->encode(slices, {});
  }

  /// Brings all coded means to all ranks, and decodes them.
  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    std::vector<int64_t> counts;
    for (const Shard& shard : run.shards) {
      counts.push_back(0);
      for (const Slice& slice : shard) counts.back() += again_->most_bytes({slice.count()});
    }
    Tensor all = Tensor::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, mine.options());
    wait(communicator_.all_gather(mine, all, counts));
    const Stopwatch decoding(times_.decode);
    FlatTensors means = FlatTensors::zeros(run.message);
    int64_t element = 0, byte = 0;
    for (size_t rank = 0; rank < counts.size(); byte += counts[rank++]) {
      const Shard& shard = run.shards[rank];
      if (shard.empty()) continue;
      const int64_t end = element + elements_of(shard);
      FlatTensors part = {means.whole.slice(std::exchange(element, end), end), {}};
      const FusedGradients slices = slices_of(shard, run.message, part.whole);
      for (const auto& [tag, values] : slices) part.parts.push_back(values);
      decode_add_all(*again_, slices, {}, {all.slice(byte, byte + counts[rank]), {counts[rank]}}, part);
    }
    return std::move(means.parts);
  }

  const ScaledCodec& scaled_;
  MessageCodec& messages_;
  std::unique_ptr<GradientCodec> again_;
};

bool sends_rows(const GradientCodec& codec) {
  const CodecTraits traits = codec.traits();
  return traits.by_rows && traits.promise == CodecPromise::feedback;
}

/// Exact codes need no second coding: their all-reduce does the same.
bool sends_elements(const GradientCodec& codec) {
  const CodecTraits traits = codec.traits();
  return traits.by_elements && traits.promise == CodecPromise::contraction;
}

bool can_be_cut(const GradientCodec& codec) {
  if (sends_rows(codec) || sends_elements(codec)) return true;
  const ScaledCodec* const scaled = codec.scaled();
  return scaled != nullptr && scaled->granule() != 0 && scaled->bucket() % scaled->granule() == 0;
}

/// Counts each shard's bytes: first the codes with their scalers, then the means that are encoded again.
ExchangePlan plan_reduce_scatter(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks,
                                 SpecParameters&) {
  if (sends_rows(codec)) return plan_reduce_scatter_of_rows(codec, message, ranks);
  if (sends_elements(codec)) return plan_reduce_scatter_of_elements(codec, message, ranks);
  const ScaledCodec& scaled = *codec.scaled();
  const auto again = scaled.for_sums();
  std::vector<CutTensor> tensors;
  std::vector<int64_t> codes, means;
  for (const CodedTensor& tensor : message) tensors.push_back({tensor.shape.numel(), scaled.granule()});
  for (const Shard& shard : cut_into_shards(tensors, ranks)) {
    codes.push_back(ShardPlace(scaled, tensors, shard).bytes(codec));
    means.push_back(0);
    for (const Slice& slice : shard) means.back() += again->most_bytes({slice.count()});
  }
  const auto n = static_cast<double>(elements_of(message));
  ExchangePlan plan;
  if (shares_scalers(codec)) plan.phases.push_back(plan_scalers(codec, message, ranks));
  plan.under_way = plan.phases.size();
  plan.phases.push_back({.encoded = n, .wire = all_to_all_load(codes), .decoded = n});
  plan.phases.push_back({.encoded = n / ranks, .wire = all_gather_load(means), .decoded = n});
  return plan;
}

}  // namespace

constinit const ExchangeEntry reduce_scatter_entry = {
    "reduce-scatter",
    "ternary (2bit or 5trit) and qsgd (fixed, align=none), with a bucket of whole bytes: a multiple of 32 (5trit: 5); "
    "fp16, bf16 and onebit",
    "2(N-1)/N · n·b/8",
    can_be_cut,
    [](GradientCodec& codec, Communicator& communicator, SpecParameters&) -> std::unique_ptr<Exchange> {
      if (sends_rows(codec)) return make_reduce_scatter_of_rows(codec, communicator);
      if (sends_elements(codec)) return make_reduce_scatter_of_elements(codec, communicator);
      return std::make_unique<ReduceScatter>(codec, communicator);
    },
    plan_reduce_scatter};

}  // namespace tern
