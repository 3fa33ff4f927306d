#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/layers/module.h"

namespace tern {

/// A tensor that ranks average, step after step. The list of tensors is the same on all ranks.
struct AveragedTensor {
  std::string name;
  int64_t elements = 0;
  bool coded = true;  ///< false: travels as floats, whatever the options say
};

/// Chooses which tensors travel as floats although a codec is set, and which tensors travel together.
struct FusionOptions {
  int64_t min_compress = 0;                 ///< tensors of fewer elements travel as floats
  std::string keep_float = {};              ///< tensors with a name that matches do, too: * and ? as in a shell
  int64_t fusion_bytes = int64_t{1} << 20;  ///< a message is full if its tensors have this many bytes as floats
};

/// The tensors of one message, by their index in the list.
struct FusedMessage {
  std::vector<size_t> members;
  bool coded = true;
};

/// Makes the tensors whose names match `pattern` travel as floats. Throws InputError if it matches no tensor; an empty
/// pattern is none.
void leave_uncoded(std::vector<AveragedTensor>& tensors, const std::string& pattern);

/// Groups the tensors into messages, from the end of the list to its beginning, because backward produces gradients in
/// that order. If `one_kind`, floats and coded tensors travel in the same way: they share messages, which count as
/// coded. Throws InputError if `keep_float` matches no tensor.
std::vector<FusedMessage> fuse(std::vector<AveragedTensor> tensors, const FusionOptions& options,
                               bool one_kind = false);

/// The model's parameters as tensors to average. Throws InputError that names `method` if a parameter is not f32.
std::vector<AveragedTensor> averaged_parameters(Module& model, std::string_view method);

/// How tensors travel to become their means.
struct AveragingOptions {
  std::string codec = "none";           ///< a spec of `make_codec`
  std::vector<CodecEntry> codecs = {};  ///< the caller's codecs that specs can name, beside tern's
  std::string exchange = {};            ///< one of `exchange_names`; empty: `default_exchange`
  FusionOptions fusion = {};
  uint64_t seed = 0;     ///< seed of the codec's random numbers
  bool overlap = false;  ///< a separate thread sends each message as soon as it is complete
  bool stale = false;    ///< all messages are under way from `give` until `finish`: the caller computes meanwhile
};

/// The exchange of tensors that travel as floats.
inline constexpr std::string_view kFloatExchange = "ring";
/// The exchange of the options, or the default one for `codec`, which the options name.
std::string chosen_exchange(const AveragingOptions& options, const GradientCodec& codec, int ranks);
/// Whether tensors with this codec and exchange travel as the others do: as floats around the ring.
bool codes_nothing(const GradientCodec& codec, std::string_view exchange);

/// Turns the ranks' tensors into their means, message by message in a fixed order. Coded tensors use the codec's
/// exchange; the others travel as floats, by all-reduce. Each message is started before the previous one is finished.
/// With `stale`, all messages are started before the first one is finished.
/// One thread uses it. The caller owns the communicator. Others may start collectives during a round, in one order on
/// all ranks.
class Averaging {
 public:
  /// Throws InputError if codec, exchange or `keep_float` do not fit.
  Averaging(Communicator& communicator, std::vector<AveragedTensor> tensors, const AveragingOptions& options);

  /// Starts a new round, with the random numbers of `step`. Forgets a round that was not finished.
  void begin(int64_t step);
  /// Gives this rank's tensor i, f32. Give each tensor once per round, in any order, and do not change it before
  /// `finish`. All tensors are on one device.
  void give(size_t i, const Tensor& tensor);
  /// Gives tensor - minus. Some exchanges read both, and never write the difference. Without `overlap`, both may change
  /// as soon as all tensors are given.
  void give_difference(size_t i, const Tensor& tensor, const Tensor& minus);
  /// Returns the means of all tensors, in their order and shapes, on the tensors' device or on the CPU. Throws Error if
  /// a tensor was not given.
  std::vector<Tensor> finish();

  /// See GradientCodec::confirm. Call it between rounds.
  void confirm(int64_t steps) const { coded_exchange_->confirm(steps); }
  /// Whether a round of tensors on a device can be recorded, and run again in later steps: see
  /// Exchange::can_be_recorded.
  bool can_be_recorded() const;
  /// What codec and exchange keep for each tensor on this rank.
  StateDict state() const;
  /// Loads a `state()`. `after_a_round`: each tensor had been coded before, so it has a residual if the codec has error
  /// feedback. Throws InputError that names a tensor that does not fit or that has no residual.
  void load_state(const StateDict& state, bool after_a_round);
  /// Whether a tensor of `state` with this name would belong to one of these tensors.
  bool has_state_named(const std::string& name) const;
  /// Times since construction. With overlap, only the time in `finish` counts, as waiting.
  ExchangeTimes times() const;

 private:
  /// Takes tensor - minus, or tensor if `minus` is undefined.
  void take(size_t i, const Tensor& tensor, const Tensor& minus);
  bool is_complete(const FusedMessage& message) const;
  Exchange& exchange_of(const FusedMessage& message) const {
    return message.coded ? *coded_exchange_ : *float_exchange_;
  }
  void start(const FusedMessage& message);
  /// Runs `operation` in the queue's order. After an operation has thrown, the later ones do not run.
  void add(std::function<void()> operation);
  /// Waits until the queue has nothing of this round left. Then throws what its first failed operation threw.
  void wait_for_works();
  /// Finishes the messages under way, in their order.
  void finish_started();
  void keep(const FusedMessage& message, std::vector<Tensor> means);

  int rank_;
  std::vector<AveragedTensor> tensors_;
  uint64_t seed_;
  std::unique_ptr<GradientCodec> codec_, floats_;
  std::unique_ptr<Exchange> coded_exchange_, float_exchange_;
  std::vector<FusedMessage> messages_;
  size_t next_message_ = 0;
  int64_t step_ = 0;
  std::vector<Tensor> given_, minus_, means_;
  bool stale_;
  std::deque<std::function<void()>> started_;  // each finishes a message under way
  std::vector<Work> works_;
  bool failed_ = false;  // only the queue's operations use it, in order
  double waited_ = 0;
  std::unique_ptr<WorkQueue> queue_;  // last: its thread uses the other members
};

}  // namespace tern
