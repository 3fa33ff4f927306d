#pragma once

#include "tern/core/error.h"
#include "tern/dist/comm/bytes.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// The largest scalers of all ranks: f32 [buckets] for each tensor, on the gradients' device. Takes one all-reduce for
/// the whole message (TernGrad eq. 4).
FlatTensors shared_scalers(GradientCodec& codec, const FusedGradients& message, Communicator& communicator,
                           ExchangeTimes& times);

/// Plans the all-reduce of `shared_scalers`.
ExchangePhase plan_scalers(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks);

/// u8 [bytes], a copy.
Tensor tensor_of(std::span<const std::byte> bytes);

/// Encodes all tensors of a message. `scalers` are the scalers that all ranks share, f32 [buckets] per tensor; then the
/// message holds only codes. If `scalers` is empty, the message holds its own scalers. If the codec has `messages()`,
/// it makes one whole message. If it has `parts()` and the gradients are not on the CPU, it codes there. Otherwise each
/// tensor is a message of `codec`, on the CPU.
CodedMessage encode_all(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers);
/// sums += the tensors that `coded` holds. `scalers` as in `encode_all`.
void decode_add_all(GradientCodec& codec, const FusedGradients& message, const FlatTensors& scalers,
                    const CodedMessage& coded, FlatTensors& sums);

/// Calls decode(), which decodes these tensors by MessageCodec or PartsCodec. Errors name the codec and the tensors.
template <class Decode>
auto decoded(const GradientCodec& codec, const FusedGradients& message, Decode decode) {
  try {
    return decode();
  } catch (const Error& error) {
    fail({"codec ", codec.spec(), ", tensor '", tag_of(message).name, "': ", error.what()});
  }
}

/// An exchange in which ranks send whole messages of the codec.
class CodedExchange : public Exchange {
 public:
  using Exchange::Exchange;

 protected:
  /// This rank's message, and what the rank must know of the other ranks' messages.
  struct Encoded {
    FlatTensors scalers;                        ///< defined if ranks share them
    Tensor bytes;                               ///< u8
    std::vector<std::vector<int64_t>> lengths;  ///< of each rank: CodedMessage::lengths
    std::vector<int64_t> counts;                ///< bytes of each rank
    int64_t total = 0;
    /// Splits `all`, which holds the bytes of all ranks in rank order, into the messages of the ranks.
    std::vector<CodedMessage> split(const Tensor& all) const;
  };
  /// The means of the messages of all ranks, by MessageCodec::means. `all` holds their bytes in rank order.
  std::vector<Tensor> means_by_codec(const FusedGradients& message, const Encoded& encoded, const Tensor& all,
                                     kernels::MeanOver over) const;
  /// sums += the messages of all ranks. `all` holds their bytes in rank order.
  void decode_add_everyones(const FusedGradients& message, const Encoded& encoded, const Tensor& all,
                            FlatTensors& sums) const;
  /// Encodes this rank's message. If the codec's size is not fixed, ranks send each other their lengths, on the
  /// overhead account.
  Encoded encode(const FusedGradients& message, bool share_scalers);
  /// The same for gradient i - minus[i], if minus[i] is defined. Only for codecs of whole messages without scalers.
  Encoded encode_difference(const FusedGradients& message, std::span<const Tensor> minus);

 private:
  Encoded counted(const CodedMessage& coded, FlatTensors scalers);
  std::vector<std::vector<int64_t>> lengths_of_all(const std::vector<int64_t>& lengths);
};

/// The plan of `CodedExchange::encode`, and a last phase. The exchange fills in the wire load and the decoding of that
/// phase.
struct CodedPlan {
  ExchangePlan plan = {};
  std::vector<int64_t> counts = {};  ///< bytes of each rank's message
  double elements = 0;
};
CodedPlan plan_coded(const GradientCodec& codec, std::span<const CodedTensor> message, int ranks, bool share_scalers);

/// Whether codes of several ranks can be summed as integers: all ranks must use the same scalers.
bool sums_integers(const GradientCodec& codec);

/// sums += the codes of `coded` as whole numbers, without scalers.
void add_integers(GradientCodec& codec, const FusedGradients& message, const CodedMessage& coded, FlatTensors& sums);

/// Bytes of `count` whole numbers within ±most, ⌈log2(2·most + 1)⌉ bits each: kernels::code_bytes.
int64_t packed_integer_bytes(int64_t count, int64_t most);
/// Packs x, f32 [count] of whole numbers within ±most. Returns u8 [packed_integer_bytes].
Tensor pack_integers(const Tensor& x, int64_t most);
/// sum += the packed numbers.
void add_packed_integers(const Tensor& packed, int64_t most, Tensor& sum);

/// Turns the summed codes of `ranks` ranks into mean gradients: value · scaler of its bucket / ranks. `scalers` holds
/// f32 [buckets] per tensor.
std::vector<Tensor> means_of_integers(const ScaledCodec& codec, const std::vector<Tensor>& scalers, FlatTensors sums,
                                      int ranks);

}  // namespace tern
