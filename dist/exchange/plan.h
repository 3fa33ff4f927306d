#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tern/core/shape.h"
#include "tern/dist/codec/codec.h"

namespace tern {

/// What a collective operation puts on the ranks' cables, of which each carries both directions at once: what
/// `collectives/` does, in numbers. Framing is not in it.
struct WireLoad {
  double busiest = 0;  ///< bytes through the cable that is busy longest, in its busier direction
  int64_t hops = 0;    ///< messages of which each waits for the one before
  int64_t sent = 0;    ///< bytes that all ranks send together
};

/// Of `bytes` on each of N ranks, around the ring: 2(N-1)/N of them a rank.
WireLoad all_reduce_load(int64_t bytes, int ranks);
/// Of parts[r] bytes from rank r, around the ring.
WireLoad all_gather_load(std::span<const int64_t> parts);
/// Of parts[r] bytes from every rank to rank r.
WireLoad all_to_all_load(std::span<const int64_t> parts);
/// Of parts[r] bytes from rank r to the next one.
WireLoad shift_load(std::span<const int64_t> parts);
/// Of parts[r] bytes between rank r and a root, whose own are `parts[0]`: gather and scatter.
WireLoad root_load(std::span<const int64_t> parts);

/// What a network asks: seconds, α + β·bytes (Hockney, 1994) for each of the messages that follow on each other.
struct LinkCost {
  double hop = 0;   ///< α
  double byte = 0;  ///< β

  double seconds(const WireLoad& load) const { return hop * static_cast<double>(load.hops) + byte * load.busiest; }
};

/// A tensor of a message, and the bytes that a codec makes of it.
struct CodedTensor {
  Shape shape;
  int64_t bytes = 0;
};
/// The codec's messages have their size, or where that varies the most.
std::vector<CodedTensor> coded_tensors(const GradientCodec& codec, std::span<const Shape> shapes);

int64_t elements_of(std::span<const CodedTensor> message);

/// A part of an exchange: elements are coded, then bytes travel, then elements are read. Counts are those of the rank
/// that the others wait for.
struct ExchangePhase {
  double encoded = 0;
  WireLoad wire = {};
  double decoded = 0;
  bool payload = true;  ///< else its bytes are on the overhead account
};

/// What the ranks do with one message, without doing it.
struct ExchangePlan {
  std::vector<ExchangePhase> phases;
  size_t under_way = 0;  ///< the phase whose bytes travel when `Exchange::start` returns

  double encoded() const;
  double decoded() const;
  /// Payload that all ranks send together, bytes.
  int64_t sent() const;
};

/// Of the exchange of this name, on `ranks` ranks of which there may be any number. Errors are `check_exchange`'s.
ExchangePlan plan_exchange(std::string_view exchange, const GradientCodec& codec, std::span<const CodedTensor> message,
                           int ranks);

}  // namespace tern
