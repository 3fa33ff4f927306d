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
      : Exchange(codec, communicator), feedback_(*codec.feedback()), again_(feedback_.fresh()) {}

  StateDict state() const override { return again_->state(); }
  void load_state(const StateDict& state) override { again_->load_state(state); }

 protected:
  MeansToCome begin(FusedGradients message) override {
    const auto me = static_cast<size_t>(communicator_.rank());
    std::vector<CutTensor> tensors;
    for (const auto& [tag, gradient] : message) tensors.push_back({gradient.numel(), row_width(gradient.shape())});
    Run run = {std::move(message), cut_into_shards(tensors, communicator_.size()), {}};
    for (const Shard& shard : run.shards) run.bytes.push_back(bytes(run, shard));
    const std::vector<int64_t> receives(run.bytes.size(), run.bytes[me]);
    Tensor coming = Tensor::empty({communicator_.size() * run.bytes[me]}, {.dtype = DType::u8});
    const Work work = communicator_.all_to_all(encode(run), run.bytes, coming, receives);
    return [this, run = std::move(run), coming, work, me] {
      wait(work);
      return gather(run, encode_again(run, run.shards[me], coming));
    };
  }

 private:
  struct Run {
    FusedGradients message;
    std::vector<Shard> shards;
    std::vector<int64_t> bytes;  ///< of each shard
  };

  int64_t bytes(const Run& run, const Slice& slice) const {
    return codec_.most_bytes(shape_of(slice, run.message[slice.tensor].gradient.shape()));
  }
  int64_t bytes(const Run& run, const Shard& shard) const {
    int64_t sum = 0;
    for (const Slice& slice : shard) sum += bytes(run, slice);
    return sum;
  }

  /// Encodes all shards, in rank order, and keeps what they leave out.
  Tensor encode(const Run& run) {
    const Stopwatch encoding(times_.encode);
    std::vector<Tensor> corrected;
    for (const auto& [tag, gradient] : run.message) corrected.push_back(feedback_.corrected(tag, gradient));
    std::vector<std::byte> codes;
    for (const Shard& shard : run.shards)
      for (const Slice& slice : shard) {
        const GradientTag& tag = run.message[slice.tensor].tag;
        Tensor part = view_of(slice, corrected[slice.tensor]), sent = Tensor::zeros(part.shape());
        const size_t begin = codes.size();
        feedback_.inner().encode(tag, part, codes);
        feedback_.inner().decode_add(tag, std::span(codes).subspan(begin), sent);
        kernels::subtract(part, sent, part);
      }
    for (size_t i = 0; i < corrected.size(); ++i) feedback_.keep(run.message[i].tag, std::move(corrected[i]));
    return tensor_of(codes);
  }

  Tensor encode_again(const Run& run, const Shard& shard, const Tensor& everyones) {
    std::vector<Tensor> sums;
    for (const Slice& slice : shard)
      sums.push_back(Tensor::zeros(shape_of(slice, run.message[slice.tensor].gradient.shape())));
    {
      const Stopwatch decoding(times_.decode);
      ByteReader reader = reader_of(everyones);
      for (int rank = 0; rank < communicator_.size(); ++rank)
        for (size_t k = 0; k < shard.size(); ++k) decode_next(run, shard[k], reader, sums[k]);
    }
    const Stopwatch encoding(times_.encode);
    std::vector<std::byte> codes;
    for (size_t k = 0; k < shard.size(); ++k) {
      kernels::scale(sums[k], 1.0 / communicator_.size(), sums[k]);
      GradientTag tag = run.message[shard[k].tensor].tag;
      tag.key.purpose = Purpose::requantize;  // so that the mean does not draw the gradient's random numbers
      again_->encode(tag, sums[k], codes);
    }
    return tensor_of(codes);
  }

  std::vector<Tensor> gather(const Run& run, const Tensor& mine) {
    Tensor all = Tensor::empty({std::accumulate(run.bytes.begin(), run.bytes.end(), int64_t{0})}, {.dtype = DType::u8});
    wait(communicator_.all_gather(mine, all, run.bytes));
    const Stopwatch decoding(times_.decode);
    FlatTensors means = FlatTensors::zeros(run.message);
    ByteReader reader = reader_of(all);
    for (const Shard& shard : run.shards)
      for (const Slice& slice : shard) {
        Tensor part = view_of(slice, means.parts[slice.tensor]);
        decode_next(run, slice, reader, part);
      }
    return means.parts;
  }

  /// sum += the slice that the next bytes hold.
  void decode_next(const Run& run, const Slice& slice, ByteReader& reader, Tensor& sum) const {
    feedback_.inner().decode_add(run.message[slice.tensor].tag, reader.take(static_cast<size_t>(bytes(run, slice))),
                                 sum);
  }

  FeedbackCodec& feedback_;
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
