#include <algorithm>
#include <numeric>

#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/shards.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

/// Elements of a row: all weights of an output unit. A vector is one row.
int64_t row_width(const Shape& shape) {
  const int64_t rows = shape.rank() < 2 ? 1 : shape[0];
  return std::max<int64_t>(1, rows == 0 ? 0 : shape.numel() / rows);
}

/// The shape of a slice of whole rows, as a tensor of its own.
Shape shape_of(const Slice& slice, const Shape& whole) {
  if (whole.rank() < 2) return {slice.count()};
  return {slice.count() / row_width(whole), row_width(whole)};
}

Tensor view_of(const Slice& slice, const Tensor& whole) {
  return whole.reshape({-1}).slice(slice.begin, slice.end).reshape(shape_of(slice, whole.shape()));
}

class ReduceScatterOfRows final : public Exchange {
 public:
  ReduceScatterOfRows(GradientCodec& codec, Communicator& communicator)
      : Exchange(codec, communicator),
        feedback_(*codec.feedback()),
        rows_(messages_to_cut(feedback_.inner())),
        again_(feedback_.fresh()) {}

  StateDict state() const override { return again_->state(); }
  void load_state(const StateDict& state) override { again_->load_state(state); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    const auto me = static_cast<size_t>(communicator_.rank());
    std::vector<CutTensor> tensors;
    for (const auto& [tag, gradient] : message) tensors.push_back({gradient.numel(), row_width(gradient.shape())});
    Run run = {std::move(message), cut_into_shards(tensors, communicator_.size()), {}};
    for (const Shard& shard : run.shards) run.bytes.push_back(bytes(run, shard));
    const auto [coming, work] = send_shards(communicator_, encode(run), run.bytes);
    return [this, run = std::move(run), coming = coming, work = work, me] {
      wait(work);
      return gather(run, encode_again(run, run.shards[me], coming));
    };
  }
  bool runs_on_devices() const override { return true; }

 private:
  struct Run {
    FusedGradients message;
    std::vector<Shard> shards;
    std::vector<int64_t> bytes;  ///< of each shard
  };

  int64_t bytes(const Run& run, const Shard& shard) const {
    int64_t sum = 0;
    for (const Slice& slice : shard)
      sum += codec_.most_bytes(shape_of(slice, run.message[slice.tensor].gradient.shape()));
    return sum;
  }
  Tensor empty_bytes(const Run& run) const {
    return Tensor::empty({std::accumulate(run.bytes.begin(), run.bytes.end(), int64_t{0})},
                         {.dtype = DType::u8, .device = run.message.front().gradient.device()});
  }
  /// The slices of a shard in `tensors`, which have the shapes of the message.
  static FusedGradients slices_of(const Shard& shard, const FusedGradients& tensors) {
    FusedGradients slices;
    for (const Slice& slice : shard)
      slices.push_back({tensors[slice.tensor].tag, view_of(slice, tensors[slice.tensor].gradient)});
    return slices;
  }
  static std::vector<Tensor> values_of(const FusedGradients& slices) {
    std::vector<Tensor> values;
    for (const auto& [tag, slice] : slices) values.push_back(slice);
    return values;
  }

  /// Encodes all shards, in rank order, and keeps what they leave out.
  Tensor encode(const Run& run) {
    const Stopwatch encoding(times_.encode);
    const FusedGradients corrected = feedback_.corrected(run.message);
    const Tensor codes = empty_bytes(run);
    int64_t at = 0;
    for (size_t rank = 0; rank < run.shards.size(); at += run.bytes[rank++]) {
      if (run.shards[rank].empty()) continue;
      const FusedGradients slices = slices_of(run.shards[rank], corrected);
      const Tensor coded = rows_.encode(slices, {});
      codes.slice(at, at + run.bytes[rank]).copy_from(coded);
      rows_.subtract(coded, {}, values_of(slices));
    }
    for (const auto& [tag, left] : corrected) feedback_.keep(tag, left);
    return codes;
  }

  /// Averages the shard in all ranks' codes, u8 [ranks, bytes], and encodes the mean.
  Tensor encode_again(const Run& run, const Shard& shard, const Tensor& everyones) {
    if (shard.empty()) return everyones.reshape({0});
    FusedGradients means = slices_of(shard, run.message);
    {
      const Stopwatch decoding(times_.decode);
      FlatTensors sums = FlatTensors::zeros(means);
      decoded(codec_, means, [&] { rows_.decode_add(everyones, {}, sums.parts); });
      kernels::scale(sums.whole, 1.0 / communicator_.size(), sums.whole);
      for (size_t k = 0; k < means.size(); ++k) {
        means[k].gradient = sums.parts[k];
        means[k].tag.key.purpose = Purpose::requantize;  // so that it does not draw the gradient's random numbers
      }
    }
    const Stopwatch encoding(times_.encode);
    return again_->messages()->encode(means, {});
  }

  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    Tensor all = empty_bytes(run);
    wait(communicator_.all_gather(mine, all, run.bytes));
    const Stopwatch decoding(times_.decode);
    const FlatTensors means = FlatTensors::zeros(run.message);
    FusedGradients tensors = run.message;
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].gradient = means.parts[i];
    int64_t at = 0;
    for (size_t rank = 0; rank < run.shards.size(); at += run.bytes[rank++]) {
      if (run.shards[rank].empty()) continue;
      const Tensor coded = all.slice(at, at + run.bytes[rank]).reshape({1, run.bytes[rank]});
      const FusedGradients slices = slices_of(run.shards[rank], tensors);
      decoded(codec_, slices, [&] { rows_.decode_add(coded, {}, values_of(slices)); });
    }
    return means.parts;
  }

  FeedbackCodec& feedback_;
  MessageCodec& rows_;  ///< without feedback
  std::unique_ptr<GradientCodec> again_;
};

}  // namespace

std::unique_ptr<Exchange> make_reduce_scatter_of_rows(GradientCodec& codec, Communicator& communicator) {
  return std::make_unique<ReduceScatterOfRows>(codec, communicator);
}

ExchangePlan plan_reduce_scatter_of_rows(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks) {
  std::vector<CutTensor> tensors;
  for (const CodedTensor& tensor : message) tensors.push_back({tensor.shape.numel(), row_width(tensor.shape)});
  std::vector<int64_t> bytes;
  int64_t most = 0;  // elements of the largest shard
  for (const Shard& shard : cut_into_shards(tensors, ranks)) {
    bytes.push_back(0);
    int64_t elements = 0;
    for (const Slice& slice : shard) {
      bytes.back() += codec.most_bytes(shape_of(slice, message[slice.tensor].shape));
      elements += slice.count();
    }
    most = std::max(most, elements);
  }
  const auto n = static_cast<double>(elements_of(message)), shard = static_cast<double>(most);
  ExchangePlan plan;
  plan.phases.push_back({.encoded = n, .wire = all_to_all_load(bytes), .decoded = ranks * shard});
  plan.phases.push_back({.encoded = shard, .wire = all_gather_load(bytes), .decoded = n});
  return plan;
}

}  // namespace tern
