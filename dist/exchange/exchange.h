#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/stopwatch.h"
#include "tern/dist/codec/codec.h"
#include "tern/dist/comm/communicator.h"

namespace tern {

/// Seconds of one rank's training that it did not spend on its own computation. With NCCL, `wait` ends once an
/// operation is in a stream; the GPU's own wait for other ranks does not count. Steps that are recorded add nothing.
struct ExchangeTimes {
  double encode = 0, wait = 0, decode = 0;

  double total() const { return encode + wait + decode; }

  friend ExchangeTimes operator+(const ExchangeTimes& a, const ExchangeTimes& b) {
    return {a.encode + b.encode, a.wait + b.wait, a.decode + b.decode};
  }
  friend ExchangeTimes operator-(const ExchangeTimes& a, const ExchangeTimes& b) {
    return {a.encode - b.encode, a.wait - b.wait, a.decode - b.decode};
  }
  friend ExchangeTimes operator/(const ExchangeTimes& a, double n) { return {a.encode / n, a.wait / n, a.decode / n}; }
};

/// Waits for the other ranks, then returns the means over all ranks, in the order and the shapes of the gradients. The
/// means are on the gradients' device or on the CPU.
using MeansToCome = std::function<std::vector<Tensor>()>;

/// Computes the mean of the gradients of all ranks, or what the exchange's entry calls the mean; every rank gets the
/// same bits. All ranks start the same messages in the same order, and finish them in that order. A rank may start a
/// message before it finishes the previous one. One thread at a time may use an Exchange. The caller owns codec and
/// communicator, and they outlive the Exchange.
class Exchange {
 public:
  Exchange(GradientCodec& codec, Communicator& communicator) : codec_(codec), communicator_(communicator) {}
  virtual ~Exchange() = default;

  /// Encodes a message and starts to send it. Do not change its tensors before the message is finished. If both
  /// exchange and codec can run on the gradients' device, they do; otherwise the gradients are copied to the CPU.
  /// Throws the codec's errors and PeerErrors.
  MeansToCome start(FusedGradients message);
  /// The same for gradients that nobody has computed yet: gradient i - minus[i], if minus[i] is defined. These two
  /// tensors may change as soon as the call returns.
  MeansToCome start(FusedGradients message, std::vector<Tensor> minus);
  /// What the exchange keeps from step to step, by tensor; empty if it keeps nothing. Each rank has its own. Save it,
  /// and load it into an equal exchange. Throws InputError that says what does not fit.
  virtual StateDict state() const { return {}; }
  virtual void load_state(const StateDict& state);
  /// See GradientCodec::confirm.
  virtual void confirm(int64_t steps) const { codec_.confirm(steps); }
  /// Whether messages of gradients on a device can be recorded, and run again in later steps (kernels/recording.h):
  /// everything then happens on the device, and messages always have the same sizes.
  virtual bool can_be_recorded() const { return false; }
  /// Times since construction, of `start` and of the calls that finish messages.
  const ExchangeTimes& times() const { return times_; }

 protected:
  /// Does the work of `start`. The gradients are on the CPU unless `runs_on_devices`.
  virtual MeansToCome begin(FusedGradients message) = 0;
  /// Does the work of the second `start`. Unless an exchange overrides it, this computes the differences first.
  virtual MeansToCome begin_difference(FusedGradients message, std::vector<Tensor> minus);
  virtual bool runs_on_devices() const { return false; }
  /// Calls work.wait() and adds its time to `times`.
  void wait(const Work& work);

  GradientCodec& codec_;
  Communicator& communicator_;
  ExchangeTimes times_;

 private:
  FusedGradients computed(FusedGradients message, std::span<const Tensor> minus);
};

/// Throws InputError if no exchange has the name of this spec, NAME or NAME:PARAMETER=VALUE,..., if a parameter is
/// wrong, or if the exchange does not take the codec. The error names what would fit.
void check_exchange(std::string_view spec, const GradientCodec& codec);
/// Makes an exchange after `check_exchange`.
std::unique_ptr<Exchange> make_exchange(std::string_view spec, GradientCodec& codec, Communicator& communicator);

/// The exchange for a codec and a number of ranks. Codecs of floats (none, fp16, bf16) use ring. Other codecs use
/// allgather if ranks · bits < 64: it takes one round, and moves fewer bytes than floats around a ring. Above that
/// limit, ternary uses ternary-ring if its ranks can share scalers. Other codecs use reduce-scatter if it takes them,
/// else allgather.
std::string default_exchange(const GradientCodec& codec, int ranks);

std::vector<std::string> exchange_names();
/// Describes what each exchange moves and which codecs it takes: tern's codecs, and the caller's `own`.
std::string exchange_help(std::span<const CodecEntry> own = {});

}  // namespace tern
