#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// Elements [begin, end) of a flattened tensor of a message.
struct Slice {
  size_t tensor;
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};
/// The elements that one rank averages: at most one slice of each tensor.
using Shard = std::vector<Slice>;
int64_t elements_of(const Shard& shard);

/// A tensor of a message that is cut only at multiples of `granule` elements.
struct CutTensor {
  int64_t count;
  int64_t granule;
};
/// Cuts a message into one shard per rank. Shards are equal in elements, as far as the granules allow it.
std::vector<Shard> cut_into_shards(std::span<const CutTensor> tensors, int ranks);

/// Everyone's codes of this rank's shard, u8 [ranks, bytes], complete when `work` is.
struct ComingShard {
  Tensor codes;
  Work work;
};
/// Starts to send bytes[r] bytes of `codes`, u8 [total], to each rank r, in rank order.
ComingShard send_shards(Communicator& communicator, const Tensor& codes, const std::vector<int64_t>& bytes);

/// codec.messages(), from which shards are cut. Throws InputError that names the codec if it has none.
MessageCodec& messages_to_cut(GradientCodec& codec);

/// Reduce-scatter of a codec with error feedback that codes by rows (`onebit`), as in CNTK's 1-bit SGD. Rank r gets
/// rows of every rank's tensors. It averages them, adds the residual of its own last means, encodes them again and
/// keeps what that leaves out. Then it sends them to all ranks. So there are two residuals: of what a rank sends, a
/// gradient, and of what it sends as the owner of a shard, a mean. The second one is the exchange's state.
std::unique_ptr<Exchange> make_reduce_scatter_of_rows(GradientCodec& codec, Communicator& communicator);
ExchangePlan plan_reduce_scatter_of_rows(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks);

/// Reduce-scatter of a codec that codes by elements and rounds them (`fp16`, `bf16`). Rank r gets shard r of every
/// rank's codes, averages it in f32, and sends the coded mean to all ranks. A mean is rounded once more, however many
/// ranks there are, and no partial sum is coded, which could be beyond what an fp16 holds.
std::unique_ptr<Exchange> make_reduce_scatter_of_elements(GradientCodec& codec, Communicator& communicator);
ExchangePlan plan_reduce_scatter_of_elements(const GradientCodec& codec, std::span<const CodedTensor> message,
                                             int ranks);

}  // namespace tern
