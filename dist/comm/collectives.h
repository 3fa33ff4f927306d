#pragma once

#include <span>
#include <vector>

#include "tern/dist/comm/communicator.h"

namespace tern::detail {

/// Cuts `count` elements into one part per rank. Part r begins at ⌊r·count/ranks⌋. Parts differ by at most one element.
Cuts even_cuts(int64_t count, int ranks);
Cuts cuts_of(std::span<const int64_t> counts);

/// One operation on one rank: the transport and the label of its messages. In the functions below, `x` and `y` are
/// whole buffers, with elements of the message's dtype. Collectives return when `y` is complete and `x` is no longer
/// needed.
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

// Ring algorithms. A part travels in pieces, and a rank passes each piece on as soon as it arrives.

/// x = the reduction of all ranks' x, with the same bits on all ranks. The sum of part c begins at rank c and goes
/// around the ring upwards. Each rank sends all of x twice, except two parts.
void ring_all_reduce(const Collective& c, Bytes x, Reduction reduction);
/// y = this rank's part of the sum of all ranks' x. The sum of a part begins at the next rank and goes around the ring
/// upwards.
void ring_reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
/// y = all ranks' parts, in rank order. x is this rank's part.
void ring_all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
/// x = the root's x.
void ring_broadcast(const Collective& c, Bytes x, int root);

// Few bytes do not go around the ring. Each rank sends each part to the rank that needs it, at once, so that the
// messages do not wait for each other. All ranks together send as many bytes.

/// Whether a tensor of `bytes`, all parts together, goes directly. All ranks together then get at most
/// `kMostDirectBytes`: more could overflow the buffers of a switch. A mean part has at most `kPieceBytes`: more would
/// leave the caches. Two ranks gain nothing: their ring has as few messages.
bool goes_directly(int64_t bytes, int ranks);
inline constexpr int64_t kMostDirectBytes = 16 << 20;
/// Bytes of a piece. A piece is small enough to stay in the caches while it arrives, is summed and leaves.
inline constexpr int64_t kPieceBytes = 1 << 20;
/// As `ring_reduce_scatter` and `ring_all_gather`. Sums are balanced trees over the ranks, ((x0 + x1) + (x2 + x3)) +
/// ..., whichever rank makes them. So an element's sum does not depend on its place in x.
void direct_reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
void direct_all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
/// As `ring_all_reduce`, with sums in the order of `direct_reduce_scatter`. Two messages follow each other, and not
/// 2(N-1). A rank sends as many bytes as around the ring, give or take an element for each other rank.
void direct_all_reduce(const Collective& c, Bytes x, Reduction reduction);

/// Whether a rank's messages to all others have at most `kOneMessageBytes` together if each has the whole tensor. Then
/// an all-reduce takes one message: it sends N/2 times the bytes, and no message waits for another.
bool takes_one_message(int64_t bytes, int ranks);
inline constexpr int64_t kOneMessageBytes = 4 << 10;
/// As `direct_all_reduce`, with the same bits. Each rank sends x to all others and adds up what it receives.
void one_message_all_reduce(const Collective& c, Bytes x, Reduction reduction);

// Directly if `goes_directly`, otherwise around the ring. An all-reduce in one message if `takes_one_message`.
void reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
void all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts);
void all_reduce(const Collective& c, Bytes x, Reduction reduction);

// Direct algorithms: each message goes from its source rank to its target rank.

/// Part r of y = part (this rank) of rank r's x.
void all_to_all(const Collective& c, ConstBytes x, const Cuts& send, Bytes y, const Cuts& receive);
/// x = the root's x.
void fan_out(const Collective& c, Bytes x, int root);
/// y = this rank's part of the root's x.
void scatter(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts);
/// y on the root = all ranks' x, in rank order.
void gather(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts);
/// y on the next rank = x.
void shift(const Collective& c, ConstBytes x, Bytes y);
/// Returns after all ranks have called it. Takes ⌈log2 N⌉ rounds (Hensgen, Finkel, Manber 1988).
void barrier(const Collective& c);

/// into = into + from or max(into, from), element by element. Takes f32, f64, bf16 (summed in f32) and i64. A NaN in
/// either operand stays NaN.
void reduce(Reduction reduction, DType dtype, Bytes into, ConstBytes from);

/// Calls `run` with a call whose tensors are on the CPU: `call`, or if its tensors are on a device, a copy of it.
template <class Run>
void run_on_cpu(const CollectiveCall& call, const Run& run) {
  if (call.device() == Device{}) return run(call);
  CollectiveCall copy = call;
  if (call.x.defined()) copy.x = call.x.to(Device{});
  if (call.y.defined()) copy.y = Tensor::empty(call.y.shape(), {.dtype = call.y.dtype(), .format = call.y.format()});
  run(copy);
  if (call.y.defined()) call.y.copy_from(copy.y);
  if (call.in_place()) call.x.copy_from(copy.x);
}

/// Elements [begin, end) of a tensor.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

/// What one rank sends and receives in a direct operation, for each peer, itself included. Sends are parts of its x.
/// Receives are parts of its y, or of x if the operation is in place.
struct Transfers {
  std::vector<Range> sends, receives;
};
/// The transfers of fan_out, all_gather, all_to_all, scatter, gather or shift. Throws for other operations.
Transfers direct_transfers(const CollectiveCall& call, int rank, int size);

/// Elements that one rank sends to other ranks and receives from them.
struct Volume {
  int64_t sent = 0, received = 0;
};
/// The volume of all_reduce, reduce_scatter and all_gather, and of ring_broadcast.
Volume moved_collectively(const CollectiveCall& call, int rank, int size);
Volume moved_directly(const CollectiveCall& call, int rank, int size);
/// Counts what an operation has moved, for a library that does not count.
void count(const Message& message, const Volume& moved, Ledger& ledger);

}  // namespace tern::detail
