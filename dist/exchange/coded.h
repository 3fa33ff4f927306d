#pragma once

#include "tern/dist/exchange/flat.h"
#include "tern/dist/exchange_plan.h"

namespace tern {

/// The coded tensors of one rank's message, one after the other.
struct CodedMessage {
  Tensor bytes;                  ///< u8
  std::vector<int64_t> lengths;  ///< of each tensor's bytes
};

/// Below, `scalers` are those that all ranks share, f32 [buckets] a tensor: codes then travel alone. Where there are
/// none, messages hold their own. A codec of whole messages is asked for one; else each tensor is a message of `codec`,
/// and on the CPU.
CodedMessage encode_all(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers);
/// sums += the tensors that `coded` holds.
void decode_add_all(const GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers,
                    const CodedMessage& coded, FlatTensors& sums);

/// An exchange whose ranks send whole messages of the codec.
class CodedExchange : public Exchange {
 public:
  using Exchange::Exchange;

 protected:
  /// This rank's message, and what it must know of the others'.
  struct Encoded {
    FlatTensors scalers;                        ///< where ranks share them
    Tensor bytes;                               ///< u8
    std::vector<std::vector<int64_t>> lengths;  ///< of the tensors of each rank
    std::vector<int64_t> counts;                ///< bytes of each rank
    int64_t total = 0;
    /// Every rank's part of `all`, which holds their bytes in rank order.
    std::vector<CodedMessage> split(const Tensor& all) const;
  };
  /// sums += all of those parts.
  void decode_add_everyones(const FusedGradients& message, const Encoded& encoded, const Tensor& all,
                            FlatTensors& sums) const;
  /// Where the codec's size is not fixed, ranks tell each other their lengths, as overhead.
  Encoded encode(const FusedGradients& message, bool share_scalers);

 private:
  std::vector<std::vector<int64_t>> lengths_of_all(const std::vector<int64_t>& lengths);
};

/// What `CodedExchange::encode` does, and a last phase whose wire and reading are the exchange's own.
struct CodedPlan {
  ExchangePlan plan = {};
  std::vector<int64_t> counts = {};  ///< bytes of each rank's message
  double elements = 0;
};
CodedPlan plan_coded(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks, bool share_scalers);

}  // namespace tern
