#include <algorithm>
#include <numeric>

#include "tern/dist/codec/finite.h"
#include "tern/dist/comm/bytes.h"
#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/shards.h"
#include "tern/dist/exchange/table.h"

namespace tern {

/// Encodes and decodes slices of coded tensors. A slice holds the scalers of its buckets, unless all ranks share
/// scalers, then its codes. A bucket is a tensor, or a multiple of the granule.
class SliceCodec {
 public:
  explicit SliceCodec(const ScaledCodec& codec) : codec_(codec) {}

  bool shares() const { return codec_.sharing() == ScalerSharing::on; }
  int64_t bytes(const Slice& slice) const;
  /// Appends a slice. `scalers` and `codes` are those of the whole tensor.
  void append(const Slice& slice, const Tensor& scalers, std::span<const std::byte> codes,
              std::vector<std::byte>& bytes) const;
  /// sum += the slice. `sum` is f32 [count]. `shared` holds the tensor's scalers if ranks share them.
  void add(const Slice& slice, const Tensor& shared, ByteReader& bytes, Tensor sum) const;

 private:
  struct Buckets {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };
  Buckets buckets(const Slice& slice) const;

  const ScaledCodec& codec_;
};

SliceCodec::Buckets SliceCodec::buckets(const Slice& slice) const {
  const int64_t width = codec_.bucket();
  return width == 0 ? Buckets{0, 1} : Buckets{slice.begin / width, (slice.end + width - 1) / width};
}

int64_t SliceCodec::bytes(const Slice& slice) const {
  return codec_.code_bytes(slice.count()) + (shares() ? 0 : 4 * buckets(slice).count());
}

void SliceCodec::append(const Slice& slice, const Tensor& scalers, std::span<const std::byte> codes,
                        std::vector<std::byte>& bytes) const {
  const auto [first, last] = buckets(slice);
  if (!shares()) append_values<float>(bytes, scalers.slice(first, last).span<float>());
  const auto begin = static_cast<size_t>(codec_.code_bytes(slice.begin));
  append_values(bytes, codes.subspan(begin, static_cast<size_t>(codec_.code_bytes(slice.count()))));
}

void SliceCodec::add(const Slice& slice, const Tensor& shared, ByteReader& bytes, Tensor sum) const {
  const auto [first, last] = buckets(slice);
  const Tensor scalers = shares() ? shared.slice(first, last) : Tensor::empty({last - first});
  if (!shares()) {
    bytes.values(scalers.span<float>());
    check_scalers(scalers.span<float>());
  }
  // A slice may begin within a bucket. Then the rest of that bucket comes first, then whole buckets.
  const int64_t width = codec_.bucket(), begun = width == 0 ? 0 : slice.begin % width;
  const int64_t rest = begun == 0 ? 0 : std::min(width - begun, slice.count());
  const auto add_codes = [&](int64_t begin, int64_t end, const Tensor& units) {
    if (begin == end) return;
    Tensor part = sum.slice(begin, end);
    codec_.add_codes(bytes.take(static_cast<size_t>(codec_.code_bytes(end - begin))), units, part);
  };
  add_codes(0, rest, scalers.slice(0, 1));
  add_codes(rest, slice.count(), scalers.slice(rest > 0 ? 1 : 0, last - first));
}

namespace {

/// Rank r receives shard r of every rank's codes, averages it, and encodes the mean again, with the largest magnitude
/// as scaler. Then it sends the coded mean to all ranks.
class ReduceScatter final : public Exchange {
 public:
  ReduceScatter(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator), slices_(*codec.scaled()), again_(codec.scaled()->for_sums()) {}

 protected:
  MeansToCome begin(FusedGradients message) override {
    const auto n = static_cast<size_t>(communicator_.size()), me = static_cast<size_t>(communicator_.rank());
    Run run = {std::move(message), {}, {}};
    if (slices_.shares()) run.scalers = shared_scalers(codec_, run.message, communicator_, times_).parts;
    std::vector<CutTensor> tensors;
    for (const auto& [tag, gradient] : run.message) tensors.push_back({gradient.numel(), codec_.scaled()->granule()});
    run.shards = cut_into_shards(tensors, communicator_.size());
    std::vector<int64_t> sends(n);
    for (size_t r = 0; r < n; ++r)
      for (const Slice& slice : run.shards[r]) sends[r] += slices_.bytes(slice);
    const std::vector<int64_t> receives(n, sends[me]);
    Tensor coming = Tensor::empty({communicator_.size() * sends[me]}, {.dtype = DType::u8});
    const Work work = communicator_.all_to_all(encode(run), sends, coming, receives);
    return [this, run = std::move(run), coming, work, me] {
      wait(work);
      return gather(run, encode_again(run, run.shards[me], coming));
    };
  }

 private:
  struct Run {
    FusedGradients message;
    std::vector<Tensor> scalers;  // if ranks share them
    std::vector<Shard> shards;
  };

  /// Encodes all shards, in rank order.
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
    for (size_t k = 0; k < shard.size(); ++k)
      append_coded_mean(*again_, run.message[shard[k].tensor].tag, communicator_.size(), sums[k], bytes);
    return tensor_of(bytes);
  }

  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    std::vector<int64_t> counts(run.shards.size());
    for (size_t r = 0; r < counts.size(); ++r)
      for (const Slice& slice : run.shards[r]) counts[r] += again_->most_bytes({slice.count()});
    Tensor all = Tensor::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, {.dtype = DType::u8});
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

bool sends_rows(const GradientCodec& codec) {
  const CodecTraits traits = codec.traits();
  return traits.by_rows && traits.promise == CodecPromise::feedback;
}

bool can_be_cut(const GradientCodec& codec) {
  if (sends_rows(codec)) return true;
  const ScaledCodec* const scaled = codec.scaled();
  return scaled != nullptr && scaled->granule() != 0 && scaled->bucket() % scaled->granule() == 0;
}

/// Counts each shard's bytes: first the codes with their scalers, then the means that are encoded again.
ExchangePlan plan_reduce_scatter(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks,
                                 CodecOptions&) {
  if (sends_rows(codec)) return plan_reduce_scatter_of_rows(codec, message, ranks);
  const SliceCodec slices(*codec.scaled());
  const auto again = codec.scaled()->for_sums();
  std::vector<CutTensor> tensors;
  std::vector<int64_t> codes, means;
  for (const CodedTensor& tensor : message) tensors.push_back({tensor.shape.numel(), codec.scaled()->granule()});
  for (const Shard& shard : cut_into_shards(tensors, ranks)) {
    codes.push_back(0);
    means.push_back(0);
    for (const Slice& slice : shard) {
      codes.back() += slices.bytes(slice);
      means.back() += again->most_bytes({slice.count()});
    }
  }
  const auto n = static_cast<double>(elements_of(message));
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
    "ternary (2bit or 5trit) and qsgd (fixed), with a bucket of whole bytes: a multiple of 32 (5trit: 5); and onebit",
    "2(N-1)/N · n·b/8",
    can_be_cut,
    [](GradientCodec& codec, Communicator& communicator, CodecOptions&) -> std::unique_ptr<Exchange> {
      if (sends_rows(codec)) return make_reduce_scatter_of_rows(codec, communicator);
      return std::make_unique<ReduceScatter>(codec, communicator);
    },
    plan_reduce_scatter};

}  // namespace tern
