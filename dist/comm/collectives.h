#pragma once

#include <span>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern::detail {

/// Parts that differ by one element at most: ⌊r·count/ranks⌋.
Cuts even_cuts(int64_t count, int ranks);
Cuts cuts_of(std::span<const int64_t> counts);

/// One operation on one rank: where its messages go, and how they are labelled. Below, `x` and `y` are whole buffers of
/// elements of the message's dtype. Collectives return once `y` is complete and `x` is no longer needed.
struct Collective {
  Transport& transport;
  Message message;

  int rank() const { return transport.rank(); }
  int size() const { return transport.size(); }
  size_t width() const { return size_of(message.dtype); }
  template <class B>
  B part(B bytes, int64_t begin, int64_t end) const {
    return bytes.subspan(begin * width(), (end - begin) * width());
  }
  template <class B>
  B part(B bytes, const Cuts& cuts, int of) const {
    return part(bytes, cuts[of], cuts[of + 1]);
  }
};

// Around the ring of ranks; a part travels in pieces, each passed on as soon as it is there.

/// x = the reduction of all ranks' x, bit for bit the same on all: part c is summed from rank c on, upwards. Each rank
/// sends all of x twice, but for two parts.
void ring_all_reduce(const Collective& c, Bytes x, Reduction reduction);
/// y = this rank's part of the sum of all ranks' x, summed from the next rank on, upwards.
void ring_reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
/// y = all ranks' parts, of which this rank gives x.
void ring_all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
/// x = the root's x.
void ring_broadcast(const Collective& c, Bytes x, int root);

// Directly from rank to rank.

/// Part r of y = part (this rank) of rank r's x.
void all_to_all(const Collective& c, ConstBytes x, const Cuts& send, Bytes y, const Cuts& receive);
/// x = the root's x.
void fan_out(const Collective& c, Bytes x, int root);
/// y = this rank's part of the root's x.
void scatter(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts);
/// The root's y = all ranks' x, in rank order.
void gather(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts);
/// The next rank's y = x.
void shift(const Collective& c, ConstBytes x, Bytes y);
/// Returns once all ranks have called it: ⌈log2 N⌉ rounds (Hensgen, Finkel, Manber 1988).
void barrier(const Collective& c);

/// into = into + from or max(into, from), element by element; f32, f64, bf16 (summed in f32) and i64. A NaN stays one.
void reduce(Reduction reduction, DType dtype, Bytes into, ConstBytes from);

/// Elements [begin, end) of a tensor.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

/// What one rank gives and gets where ranks deal with each other directly, by peer, itself among them: parts of its x;
/// parts of its y, or of x in place.
struct Transfers {
  std::vector<Range> sends, receives;
};
/// Of fan_out, all_gather, all_to_all, scatter, gather and shift.
Transfers direct_transfers(const CollectiveCall& call, int rank, int size);

/// Elements that one rank sends to others and receives.
struct Volume {
  int64_t sent = 0, received = 0;
};
/// By the ring algorithms, of broadcast, all_reduce, reduce_scatter and all_gather.
Volume moved_around_ring(const CollectiveCall& call, int rank, int size);
Volume moved_directly(const CollectiveCall& call, int rank, int size);

}  // namespace tern::detail
