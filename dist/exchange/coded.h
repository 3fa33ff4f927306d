#pragma once

#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// Tensors of the shapes of a message, one after the other in one, beside its gradients.
struct FlatTensors {
  Tensor whole;               ///< f32 [n]
  std::vector<Tensor> parts;  ///< views of it

  static FlatTensors zeros(const FusedGradients& message);
  static FlatTensors copy(const FusedGradients& message);
};

/// Sums over `ranks` ranks become means, in place.
std::vector<Tensor> means(FlatTensors sums, int ranks);

/// f32 [buckets] for each tensor, on the CPU, each the largest of all ranks': one all-reduce of the message's (TernGrad
/// eq. 4).
FlatTensors shared_scalers(const GradientCodec& codec, const FusedGradients& message, Communicator& communicator,
                           ExchangeTimes& times);

/// That all-reduce.
ExchangePhase plan_scalers(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks);

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

/// Whether codes of several ranks can be summed: all must use the same scalers.
bool sums_integers(const GradientCodec& codec);

/// sums += the codes of `coded` as the whole numbers that they are.
void add_integers(const GradientCodec& codec, const FusedGradients& message, const CodedMessage& coded,
                  FlatTensors& sums);

/// Whole numbers within ±most, in ⌈log2(2·most + 1)⌉ bits each: kernels::code_bytes.
int64_t packed_integer_bytes(int64_t count, int64_t most);
/// x: f32 [count]. u8 [packed_integer_bytes].
Tensor pack_integers(const Tensor& x, int64_t most);
/// sum += the numbers.
void add_packed_integers(const Tensor& packed, int64_t most, Tensor& sum);

/// From the sums of `ranks` ranks' codes, each tensor's in units of its buckets' scalers.
std::vector<Tensor> means_of_integers(const ScaledCodec& codec, const std::vector<Tensor>& scalers, FlatTensors sums,
                                      int ranks);

}  // namespace tern
