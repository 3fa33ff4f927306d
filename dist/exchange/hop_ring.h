#pragma once

#include <functional>
#include <optional>

#include "tern/dist/comm/collectives.h"
#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// A ring in which each hop carries codes of the partial sum. Part r of a message starts at rank r + 1. Each rank adds
/// its own part and passes the sum on, until rank r has the full sum. Then the final codes of part r go around the
/// ring, and every rank decodes them. Rank r decodes them too, so that all ranks get the same bits.
class HopRing : public Exchange {
 public:
  using Exchange::Exchange;

 protected:
  MeansToCome begin(FusedGradients message) final;
  /// The values that the ring sums: f32 [n], the message's tensors one after the other.
  struct Summands {
    FlatTensors own;
    std::vector<Tensor> scalers;  ///< units of the values: f32 [buckets] per tensor; empty if the units are 1
  };
  virtual Summands summands(const FusedGradients& message) = 0;
  /// Encodes a part [count] that holds the sum of `ranks` ranks: u8 [bytes(count, ranks)].
  virtual Tensor encode(const GradientTag& tag, const Tensor& sum, int ranks) = 0;
  virtual int64_t bytes(int64_t count, int ranks) const = 0;
  virtual void decode_add(const GradientTag& tag, const Tensor& codes, int ranks, Tensor& sum) const = 0;
  /// The mean gradients, from the sums over all ranks.
  virtual std::vector<Tensor> means_of(Summands sums) = 0;

 private:
  struct Run;
  struct Hop {
    Tensor received;
    Work work;
  };
  /// Encodes the part of step `step` and sends it to the next rank. Returns nothing if `step` is N - 1 or more.
  std::optional<Hop> send(const Run& run, int step);
  std::vector<Tensor> finish(Run run, std::optional<Hop> hop);
  /// Sends each part's final codes from the rank that has its full sum, and decodes them on every rank.
  void gather(const Run& run);
};

/// Plans a HopRing for n elements. `bytes` gives the bytes of a part of `count` elements that holds the sum of `ranks`
/// ranks.
ExchangePlan plan_hop_ring(int64_t n, int ranks, const std::function<int64_t(int64_t count, int ranks)>& bytes);

}  // namespace tern
