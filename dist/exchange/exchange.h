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

/// Seconds of one rank's training that were not its own computation.
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

/// Waits for the other ranks, then gives the means over all ranks, in the order and the shapes of the gradients, beside
/// them or on the CPU.
using MeansToCome = std::function<std::vector<Tensor>()>;

/// How the ranks of a job turn their gradients into the mean, the same bits on every rank. All ranks start the same
/// messages in the same order, and finish them in that order; one may be started before the last is finished. Used by
/// one thread at a time; codec and communicator belong to the caller and outlive it.
class Exchange {
 public:
  Exchange(GradientCodec& codec, Communicator& communicator) : codec_(codec), communicator_(communicator) {}
  virtual ~Exchange() = default;

  /// Encodes a message and sends it on its way; its tensors must not be changed before it is finished. Gradients on a
  /// device are coded there where both exchange and codec can, else from a copy on the CPU. Errors are the codec's, and
  /// PeerErrors.
  MeansToCome start(FusedGradients message);
  /// Since construction, in `start` and in finishing.
  const ExchangeTimes& times() const { return times_; }

 protected:
  /// `start` of gradients that are on the CPU unless `runs_on_devices`.
  virtual MeansToCome begin(FusedGradients message) = 0;
  virtual bool runs_on_devices() const { return false; }
  /// work.wait(), on the account of `times`.
  void wait(const Work& work);

  GradientCodec& codec_;
  Communicator& communicator_;
  ExchangeTimes times_;
};

/// An InputError where there is no exchange of this name, or it does not take the codec; names those that do.
void check_exchange(std::string_view name, const GradientCodec& codec);
/// The same check, then the exchange.
std::unique_ptr<Exchange> make_exchange(std::string_view name, GradientCodec& codec, Communicator& communicator);

/// Ring for floats; for codes allgather, which is over in one round, while ranks · bits < 64, so that it moves fewer
/// bytes than floats around a ring; beyond that server for ternary, reduce-scatter for other codes that it takes, else
/// allgather.
std::string default_exchange(const GradientCodec& codec, int ranks);

std::vector<std::string> exchange_names();
/// What each exchange moves, and which codecs it takes: tern's, and the caller's `own`.
std::string exchange_help(std::span<const CodecEntry> own = {});

}  // namespace tern
