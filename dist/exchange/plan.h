#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tern/core/shape.h"
#include "tern/dist/codec/codec.h"

namespace tern {

/// The load that a collective operation of comm/collectives.h puts on the ranks' cables. A cable carries both
/// directions at once. Framing is not included.
struct WireLoad {
  double busiest = 0;  ///< bytes through the busiest cable, in its busier direction
  int64_t hops = 0;    ///< messages that wait for the previous one
  int64_t sent = 0;    ///< bytes that all ranks send, in total
  double first = 0;    ///< bytes that rank 0 sends
};

/// All-reduce of `bytes` on each of N ranks. Each rank sends (N-1) · bytes in one message to each other rank, or
/// 2(N-1)/N · bytes directly or around the ring.
WireLoad all_reduce_load(int64_t bytes, int ranks);
/// All-gather of parts[r] bytes from rank r, directly or around the ring.
WireLoad all_gather_load(std::span<const int64_t> parts);
/// All-to-all with parts[r] bytes from every rank to rank r.
WireLoad all_to_all_load(std::span<const int64_t> parts);
/// Shift of parts[r] bytes from rank r to the next rank.
WireLoad shift_load(std::span<const int64_t> parts);
/// Gather of parts[r] bytes from rank r on rank 0, and scatter of parts[r] bytes from rank 0 to rank r.
WireLoad gather_load(std::span<const int64_t> parts);
WireLoad scatter_load(std::span<const int64_t> parts);

/// Time on a network: α + β·bytes seconds (Hockney, 1994) for each of the messages that follow one another.
struct LinkCost {
  double hop = 0;   ///< α, seconds per message
  double byte = 0;  ///< β, seconds per byte

  double seconds(const WireLoad& load) const { return hop * static_cast<double>(load.hops) + byte * load.busiest; }
};

/// A tensor of a message, and the bytes that a codec makes of it.
struct CodedTensor {
  Shape shape;
  int64_t bytes = 0;
};
/// The sizes of the codec's messages; the largest sizes if they vary.
std::vector<CodedTensor> coded_tensors(const GradientCodec& codec, std::span<const Shape> shapes);

int64_t elements_of(std::span<const CodedTensor> message);

/// A phase of an exchange: a rank encodes elements, then bytes travel, then the rank decodes elements. The counts are
/// those of the rank that the other ranks wait for.
struct ExchangePhase {
  double encoded = 0;
  WireLoad wire = {};
  double decoded = 0;
  bool payload = true;  ///< if false, the bytes are on the overhead account
};

/// The steps that ranks take for one message, as numbers. A plan sends nothing.
struct ExchangePlan {
  std::vector<ExchangePhase> phases;
  size_t under_way = 0;  ///< the phase whose bytes travel when `Exchange::start` returns

  double encoded() const;
  double decoded() const;
  /// Payload bytes that all ranks send, in total.
  int64_t sent() const;
  /// Payload bytes that rank 0 sends. Approximate if parts are uneven.
  double sent_by_first() const;
};

/// Plans the exchange of this spec for any number of ranks. Throws the errors of `check_exchange`.
ExchangePlan plan_exchange(std::string_view spec, const GradientCodec& codec, std::span<const CodedTensor> message,
                           int ranks);

}  // namespace tern
