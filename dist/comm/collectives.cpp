#include "tern/dist/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/core/visit.h"

namespace tern::detail {
namespace {

template <class T>
void sum(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] = static_cast<wider_t<T>>(into[i]) + static_cast<wider_t<T>>(from[i]);
}

template <class T>
void max(T* __restrict into, const T* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const wider_t<T> a = into[i], b = from[i];
    into[i] = a > b || a != a ? a : b;
  }
}

/// Calls `body(first, last)` on the pieces of elements [begin, end), in order.
template <class Body>
void for_pieces(const Collective& c, int64_t begin, int64_t end, const Body& body) {
  const int64_t piece = kPieceBytes / static_cast<int64_t>(c.width());
  for (int64_t first = begin; first < end; first += piece) body(first, std::min(first + piece, end));
}

/// A Collective around the ring: receives from the previous rank and sends to the next rank.
struct Ring : Collective {
  explicit Ring(const Collective& c) : Collective(c) {}

  int next() const { return (rank() + 1) % size(); }
  int previous() const { return (rank() + size() - 1) % size(); }
  /// The rank `steps` before this one.
  int before(int steps) const { return ((rank() - steps) % size() + size()) % size(); }

  void send(ConstBytes bytes) const { transport.send(next(), message, bytes); }
  void send_pieces(ConstBytes x, int64_t begin, int64_t end) const {
    for_pieces(*this, begin, end, [&](int64_t first, int64_t last) { send(part(x, first, last)); });
  }
  void receive(Bytes bytes) const { transport.receive(previous(), message, bytes); }
};

Bytes bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.raw_data()), tensor.bytes()}; }

Range part(const Cuts& cuts, int rank) { return {cuts[rank], cuts[rank + 1]}; }
Range whole(const Tensor& tensor) { return {0, tensor.defined() ? tensor.numel() : 0}; }

/// Memory for `bytes` of each rank. Take it before the first message of an operation is sent: if there is none, nobody
/// has this rank's message yet.
Tensor room_for_all(const Collective& c, size_t bytes) {
  return Tensor::empty({c.size(), static_cast<int64_t>(bytes)}, {.dtype = DType::u8});
}

/// The reduction of `mine` and what all other ranks send to this rank, in the first row of `all`.
Tensor reduce_received(const Collective& c, ConstBytes mine, Reduction reduction, const Tensor& all) {
  const int n = c.size(), me = c.rank();
  const auto from = [&](int rank) { return bytes_of(all).subspan(rank * mine.size(), mine.size()); };
  std::ranges::copy(mine, from(me).begin());
  // In the order of arrival: each rank sends to the rank after it first.
  for (int k = 1; k < n; ++k) c.transport.receive((me + n - k) % n, c.message, from((me + n - k) % n));
  for (int distance = 1; distance < n; distance *= 2)
    for (int rank = 0; rank + distance < n; rank += 2 * distance)
      reduce(reduction, c.message.dtype, from(rank), from(rank + distance));
  return all.slice(0, 1);
}

/// y = this rank's part of the reduction of all ranks' x. y may be that part of x.
void reduce_directly(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts, Reduction reduction) {
  const int n = c.size(), me = c.rank();
  const Tensor all = room_for_all(c, y.size());
  for (int k = 1; k < n; ++k) {
    const int peer = (me + k) % n;
    if (const ConstBytes theirs = c.part(x, cuts, peer); !theirs.empty()) c.transport.send(peer, c.message, theirs);
  }
  if (!y.empty()) std::ranges::copy(bytes_of(reduce_received(c, c.part(x, cuts, me), reduction, all)), y.begin());
}

/// All ranks get all parts of y from the ranks that have them.
void gather_directly(const Collective& c, Bytes y, const Cuts& cuts) {
  const int n = c.size(), me = c.rank();
  const Bytes mine = c.part(y, cuts, me);
  for (int k = 1; k < n && !mine.empty(); ++k) c.transport.send((me + k) % n, c.message, mine);
  for (int k = 1; k < n; ++k) {
    const int peer = (me + n - k) % n;
    if (const Bytes theirs = c.part(y, cuts, peer); !theirs.empty()) c.transport.receive(peer, c.message, theirs);
  }
}

}  // namespace

void reduce(Reduction reduction, DType dtype, Bytes into, ConstBytes from) {
  visit_dtype(dtype, [&]<class T>(T) {
    const auto target = reinterpret_cast<T*>(into.data());
    const auto source = reinterpret_cast<const T*>(from.data());
    const size_t count = into.size() / sizeof(T);
    if (reduction == Reduction::sum)
      sum(target, source, count);
    else
      max(target, source, count);
  });
}

Cuts even_cuts(int64_t count, int ranks) {
  Cuts cuts(ranks + 1);
  for (int r = 0; r <= ranks; ++r) cuts[r] = count * r / ranks;
  return cuts;
}

Cuts cuts_of(std::span<const int64_t> counts) {
  Cuts cuts = {0};
  for (const int64_t count : counts) cuts.push_back(cuts.back() + count);
  return cuts;
}

void ring_all_reduce(const Collective& c, Bytes x, Reduction reduction) {
  const Ring ring(c);
  const int n = ring.size();
  if (n == 1) return;
  const Cuts cuts = even_cuts(static_cast<int64_t>(x.size() / ring.width()), n);
  const Tensor scratch = Tensor::empty({kPieceBytes}, {.dtype = DType::u8});
  ring.send_pieces(x, cuts[ring.rank()], cuts[ring.rank() + 1]);
  // In the first n - 1 steps, the parts travel around the ring and collect their sums. In the last n - 1 steps, the
  // complete parts travel on. They overwrite the parts of x. This is safe, because the old bytes have been sent: the
  // complete part depends on them.
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const int part = ring.before(step + 1);
    for_pieces(ring, cuts[part], cuts[part + 1], [&](int64_t first, int64_t last) {
      const Bytes mine = ring.part(x, first, last);
      if (step < n - 1) {
        const Bytes theirs = bytes_of(scratch).first(mine.size());
        ring.receive(theirs);
        reduce(reduction, ring.message.dtype, mine, theirs);
      } else {
        ring.receive(mine);
      }
      if (step + 1 < 2 * (n - 1)) ring.send(mine);
    });
  }
  ring.transport.flush();
}

void ring_reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  const Ring ring(c);
  const int n = ring.size();
  if (n == 1) {
    std::ranges::copy(x, y.begin());
    return;
  }
  const Tensor sums = Tensor::empty({static_cast<int64_t>(x.size())}, {.dtype = DType::u8});
  const int first_part = ring.before(1);
  ring.send_pieces(x, cuts[first_part], cuts[first_part + 1]);
  for (int step = 0; step < n - 1; ++step) {
    const int part = ring.before(step + 2);
    const bool last_step = step == n - 2;
    for_pieces(ring, cuts[part], cuts[part + 1], [&](int64_t first, int64_t last) {
      const Bytes sum =
          last_step ? ring.part(y, first - cuts[part], last - cuts[part]) : ring.part(bytes_of(sums), first, last);
      ring.receive(sum);
      reduce(Reduction::sum, ring.message.dtype, sum, ring.part(x, first, last));
      if (!last_step) ring.send(sum);
    });
  }
  ring.transport.flush();
}

void ring_all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  const Ring ring(c);
  const int n = ring.size();
  std::ranges::copy(x, ring.part(y, cuts, ring.rank()).begin());
  if (n == 1) return;
  ring.send_pieces(y, cuts[ring.rank()], cuts[ring.rank() + 1]);
  for (int step = 0; step < n - 1; ++step) {
    const int part = ring.before(step + 1);
    for_pieces(ring, cuts[part], cuts[part + 1], [&](int64_t first, int64_t last) {
      ring.receive(ring.part(y, first, last));
      if (step < n - 2) ring.send(ring.part(y, first, last));
    });
  }
  ring.transport.flush();
}

bool takes_one_message(int64_t bytes, int ranks) {
  return ranks > 1 && bytes > 0 && (ranks - 1) * bytes <= kOneMessageBytes;
}

void one_message_all_reduce(const Collective& c, Bytes x, Reduction reduction) {
  const Tensor all = room_for_all(c, x.size());
  for (int k = 1; k < c.size(); ++k) c.transport.send((c.rank() + k) % c.size(), c.message, x);
  const Tensor reduced = reduce_received(c, x, reduction, all);
  c.transport.flush();
  std::ranges::copy(bytes_of(reduced), x.begin());
}

bool goes_directly(int64_t bytes, int ranks) {
  return ranks > 2 && bytes <= kMostDirectBytes / ranks && bytes <= kPieceBytes * ranks;
}

void direct_reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  reduce_directly(c, x, y, cuts, Reduction::sum);
  c.transport.flush();
}

void direct_all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  std::ranges::copy(x, c.part(y, cuts, c.rank()).begin());
  gather_directly(c, y, cuts);
  c.transport.flush();
}

void direct_all_reduce(const Collective& c, Bytes x, Reduction reduction) {
  const Cuts cuts = even_cuts(static_cast<int64_t>(x.size() / c.width()), c.size());
  reduce_directly(c, x, c.part(x, cuts, c.rank()), cuts, reduction);
  // This overwrites parts of x that have been sent. It is safe, because the senders of the sums have read them.
  gather_directly(c, x, cuts);
  c.transport.flush();
}

void reduce_scatter(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  const bool direct = goes_directly(static_cast<int64_t>(x.size()), c.size());
  (direct ? direct_reduce_scatter : ring_reduce_scatter)(c, x, y, cuts);
}

void all_gather(const Collective& c, ConstBytes x, Bytes y, const Cuts& cuts) {
  const bool direct = goes_directly(static_cast<int64_t>(y.size()), c.size());
  (direct ? direct_all_gather : ring_all_gather)(c, x, y, cuts);
}

void all_reduce(const Collective& c, Bytes x, Reduction reduction) {
  const auto bytes = static_cast<int64_t>(x.size());
  const auto algorithm = takes_one_message(bytes, c.size()) ? one_message_all_reduce
                         : goes_directly(bytes, c.size())   ? direct_all_reduce
                                                            : ring_all_reduce;
  algorithm(c, x, reduction);
}

void ring_broadcast(const Collective& c, Bytes x, int root) {
  const Ring ring(c);
  if (ring.size() == 1) return;
  for_pieces(ring, 0, static_cast<int64_t>(x.size() / ring.width()), [&](int64_t first, int64_t last) {
    if (ring.rank() != root) ring.receive(ring.part(x, first, last));
    if (ring.next() != root) ring.send(ring.part(x, first, last));
  });
  ring.transport.flush();
}

void all_to_all(const Collective& c, ConstBytes x, const Cuts& send, Bytes y, const Cuts& receive) {
  const int n = c.size(), me = c.rank();
  // In each step, no two ranks send to the same rank. Otherwise one rank would get the first messages of all others.
  for (int k = 1; k < n; ++k) c.transport.send((me + k) % n, c.message, c.part(x, send, (me + k) % n));
  std::ranges::copy(c.part(x, send, me), c.part(y, receive, me).begin());
  for (int k = 1; k < n; ++k) {
    const int peer = (me + n - k) % n;
    c.transport.receive(peer, c.message, c.part(y, receive, peer));
  }
  c.transport.flush();
}

void fan_out(const Collective& c, Bytes x, int root) {
  if (c.rank() == root) {
    for (int peer = 0; peer < c.size(); ++peer)
      if (peer != root) c.transport.send(peer, c.message, x);
  } else {
    c.transport.receive(root, c.message, x);
  }
  c.transport.flush();
}

void scatter(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts) {
  if (c.rank() == root) {
    for (int peer = 0; peer < c.size(); ++peer)
      if (peer != root) c.transport.send(peer, c.message, c.part(x, cuts, peer));
    std::ranges::copy(c.part(x, cuts, root), y.begin());
  } else {
    c.transport.receive(root, c.message, y);
  }
  c.transport.flush();
}

void gather(const Collective& c, ConstBytes x, Bytes y, int root, const Cuts& cuts) {
  if (c.rank() == root) {
    std::ranges::copy(x, c.part(y, cuts, root).begin());
    for (int peer = 0; peer < c.size(); ++peer)
      if (peer != root) c.transport.receive(peer, c.message, c.part(y, cuts, peer));
  } else {
    c.transport.send(root, c.message, x);
  }
  c.transport.flush();
}

void shift(const Collective& c, ConstBytes x, Bytes y) {
  const int n = c.size(), me = c.rank();
  if (n == 1) {
    std::ranges::copy(x, y.begin());
    return;
  }
  c.transport.send((me + 1) % n, c.message, x);
  c.transport.receive((me + n - 1) % n, c.message, y);
  c.transport.flush();
}

void barrier(const Collective& c) {
  const int n = c.size(), me = c.rank();
  for (int distance = 1; distance < n; distance *= 2) {
    c.transport.send((me + distance) % n, c.message, {});
    c.transport.receive((me + n - distance) % n, c.message, {});
  }
  c.transport.flush();
}

Transfers direct_transfers(const CollectiveCall& call, int rank, int size) {
  Transfers moved = {std::vector<Range>(size), std::vector<Range>(size)};
  const Range x = whole(call.x), y = whole(call.y);
  const bool at_root = rank == call.root;
  for (int peer = 0; peer < size; ++peer) {
    Range &send = moved.sends[peer], &receive = moved.receives[peer];
    switch (call.message.operation) {
      case Operation::fan_out:
        if (at_root && peer != rank) send = x;
        if (!at_root && peer == call.root) receive = x;
        break;
      case Operation::all_gather:
        send = x;
        receive = part(call.sends, peer);
        break;
      case Operation::all_to_all:
        send = part(call.sends, peer);
        receive = part(call.receives, peer);
        break;
      case Operation::scatter:
        if (at_root) send = part(call.sends, peer);
        if (peer == call.root) receive = y;
        break;
      case Operation::gather:
        if (peer == call.root) send = x;
        if (at_root) receive = part(call.sends, peer);
        break;
      case Operation::shift:
        if (peer == (rank + 1) % size) send = x;
        if (rank == (peer + 1) % size) receive = y;
        break;
      default: fail({call.message.operation, ": this operation has no direct transfers"});
    }
  }
  return moved;
}

Volume moved_collectively(const CollectiveCall& call, int rank, int size) {
  // A rank sends every part `times` times. For each number in `but`, it sends one part one time less: the part of the
  // rank that is that many places after it. It receives what the previous rank sends.
  const auto all = [&](const Cuts& cuts, int times, std::initializer_list<int> but) {
    Volume moved = {times * cuts.back(), times * cuts.back()};
    for (const int after : but) {
      moved.sent -= part(cuts, (rank + after) % size).count();
      moved.received -= part(cuts, (rank + after + size - 1) % size).count();
    }
    return moved;
  };
  // What a rank moves in a direct all-gather. In a direct reduce-scatter it moves as much the other way.
  const auto gathered = [&](const Cuts& cuts) {
    const int64_t mine = part(cuts, rank).count();
    return Volume{(size - 1) * mine, cuts.back() - mine};
  };
  const auto bytes = [&](int64_t elements) { return elements * static_cast<int64_t>(size_of(call.message.dtype)); };
  const auto is_direct = [&](int64_t elements) { return goes_directly(bytes(elements), size); };
  switch (call.message.operation) {
    case Operation::all_reduce_sum:
    case Operation::all_reduce_max: {
      const int64_t elements = call.x.numel();
      if (takes_one_message(bytes(elements), size)) return {(size - 1) * elements, (size - 1) * elements};
      const Cuts cuts = even_cuts(elements, size);
      if (!is_direct(cuts.back())) return all(cuts, 2, {1, 2});
      const auto [sent, received] = gathered(cuts);
      return {sent + received, sent + received};
    }
    case Operation::reduce_scatter: {
      if (!is_direct(call.sends.back())) return all(call.sends, 1, {0});
      const auto [sent, received] = gathered(call.sends);
      return {received, sent};
    }
    case Operation::all_gather: return is_direct(call.sends.back()) ? gathered(call.sends) : all(call.sends, 1, {1});
    default: break;
  }
  const int64_t count = call.x.numel();  // broadcast
  return {(rank + 1) % size == call.root ? 0 : count, rank == call.root ? 0 : count};
}

Volume moved_directly(const CollectiveCall& call, int rank, int size) {
  Volume moved;
  const Transfers transfers = direct_transfers(call, rank, size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    moved.sent += transfers.sends[peer].count();
    moved.received += transfers.receives[peer].count();
  }
  return moved;
}

void count(const Message& message, const Volume& moved, Ledger& ledger) {
  const uint64_t width = size_of(message.dtype);
  ledger.sent(moved.sent * width);
  ledger.received(moved.received * width);
  if (message.account == Account::overhead) return;
  ledger.sent_payload(moved.sent * width);
  ledger.received_payload(moved.received * width);
}

}  // namespace tern::detail
