#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/layers/module.h"

namespace tern {

/// A tensor that ranks average, step after step; the same list on all ranks.
struct AveragedTensor {
  std::string name;
  int64_t elements = 0;
  bool coded = true;  ///< false: travels as floats whatever the options say
};

/// Which tensors travel as floats where the others are coded, and which travel together.
struct FusionOptions {
  int64_t min_compress = 0;                 ///< tensors of fewer elements travel as floats
  std::string keep_float = {};              ///< and those whose names match this: * and ? as in a shell
  int64_t fusion_bytes = int64_t{1} << 20;  ///< of floats: a message that has as many is full
};

/// Tensors of one message, by their place in the list.
struct FusedMessage {
  std::vector<size_t> members;
  bool coded = true;
};

/// Cuts a list into messages, from its end to its beginning, as backward produces gradients. An InputError where
/// `keep_float` matches no tensor.
std::vector<FusedMessage> fuse(const std::vector<AveragedTensor>& tensors, const FusionOptions& options);

/// The model's parameters, of which `method` averages something. An InputError where one is not f32.
std::vector<AveragedTensor> averaged_parameters(Module& model, std::string_view method);

/// How tensors travel to become their means.
struct AveragingOptions {
  std::string codec = "none";           ///< a spec of `make_codec`
  std::vector<CodecEntry> codecs = {};  ///< that specs can name, beside tern's
  std::string exchange = {};            ///< one of `exchange_names`; empty: `default_exchange`
  FusionOptions fusion = {};
  uint64_t seed = 0;     ///< of the codec's random numbers
  bool overlap = false;  ///< a thread of its own sends each message as soon as it is complete
};

/// Turns the ranks' tensors into their means, message by message in a fixed order: coded ones by the codec's exchange,
/// the others as floats by the ring. Each is started before the one before is finished. Used by one thread; the
/// communicator is the caller's and used by nobody else during a round.
class Averaging {
 public:
  /// An InputError where codec, exchange or pattern do not fit.
  Averaging(Communicator& communicator, std::vector<AveragedTensor> tensors, const AveragingOptions& options);

  /// A new round, with the random numbers of `step`.
  void begin(int64_t step);
  /// This rank's tensor number i, f32, once a round in any order; not to be changed before `finish`. All are on one
  /// device.
  void give(size_t i, const Tensor& tensor);
  /// The means of all tensors, beside them or on the CPU, in their order and shapes; each must have been given.
  std::vector<Tensor> finish();

  /// What the codec keeps of each tensor on this rank.
  StateDict state() const { return codec_->state(); }
  void load_state(const StateDict& state);
  /// Since construction. With overlap, what was not hidden counts as waiting.
  ExchangeTimes times() const;

 private:
  bool is_complete(const FusedMessage& message) const;
  void start(const FusedMessage& message);
  /// Runs it in the queue's order; after one that has thrown the others are not run.
  void add(std::function<void()> operation);
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
  std::vector<Tensor> given_, means_;
  std::function<void()> started_;  // finishes the message under way
  std::vector<Work> works_;
  bool failed_ = false;  // touched in the queue's order alone
  double waited_ = 0;
  std::unique_ptr<WorkQueue> queue_;  // last: its thread uses the rest
};

}  // namespace tern
