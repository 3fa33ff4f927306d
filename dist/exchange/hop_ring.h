#pragma once

#include <functional>
#include <optional>

#include "tern/dist/comm/collectives.h"
#include "tern/dist/exchange/coded.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// A ring whose hops carry codes of the sum so far. Part r of a message starts at rank r + 1; each rank adds its own
/// and passes the sum on, until rank r has all of it. Then part r's last codes go around, and every rank decodes them,
/// rank r too.
class HopRing : public Exchange {
 public:
  using Exchange::Exchange;

 protected:
  MeansToCome begin(FusedGradients message) final;
  /// What the ring sums: f32 [n], the message's tensors one after the other.
  struct Summands {
    FlatTensors own;
    std::vector<Tensor> scalers;  ///< of its units, f32 [buckets] a tensor; none where they are 1
  };
  virtual Summands summands(const FusedGradients& message) = 0;
  /// The codes of a part [count] that holds the sum of `ranks` ranks: u8 [bytes].
  virtual Tensor encode(const GradientTag& tag, const Tensor& sum, int ranks) = 0;
  virtual int64_t bytes(int64_t count, int ranks) const = 0;
  virtual void decode_add(const GradientTag& tag, const Tensor& codes, int ranks, Tensor& sum) const = 0;
  /// From the sum over all ranks.
  virtual std::vector<Tensor> means_of(Summands sums) = 0;

 private:
  struct Run;
  struct Hop {
    Tensor received;
    Work work;
  };
  /// Passes on what step `step` of N - 1 has to; none where there is no such step.
  std::optional<Hop> send(const Run& run, int step);
  std::vector<Tensor> finish(Run run, std::optional<Hop> hop);
  /// Every part's codes, from the rank that has it all, into everyone's sums.
  void gather(const Run& run);
};

/// Of n elements, where a part of `count` that holds the sum of `ranks` ranks takes so many bytes.
ExchangePlan plan_hop_ring(int64_t n, int ranks, const std::function<int64_t(int64_t count, int ranks)>& bytes);

}  // namespace tern
