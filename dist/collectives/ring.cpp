#include <algorithm>
#include <cstring>

#include "tern/core/tensor.h"
#include "tern/dist/collectives/reduce.h"

namespace tern::detail {
namespace {

/// Bytes of a piece: small enough to stay in the caches between arriving, being summed and leaving.
constexpr int64_t kPieceBytes = 1024 * 1024;

/// Calls `body(first, last)` on the pieces of elements [begin, end), in order.
template <class Body>
void for_pieces(const Collective& c, int64_t begin, int64_t end, const Body& body) {
  const int64_t piece = kPieceBytes / static_cast<int64_t>(c.width());
  for (int64_t first = begin; first < end; first += piece) body(first, std::min(first + piece, end));
}

/// The ring: what comes from the rank before goes to the rank after.
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

}  // namespace

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
  // Parts gather their sums for n - 1 steps, and travel on, complete, for n - 1 more. What a step overwrites has left:
  // the complete part could not come without it.
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

void ring_broadcast(const Collective& c, Bytes x, int root) {
  const Ring ring(c);
  if (ring.size() == 1) return;
  for_pieces(ring, 0, static_cast<int64_t>(x.size() / ring.width()), [&](int64_t first, int64_t last) {
    if (ring.rank() != root) ring.receive(ring.part(x, first, last));
    if (ring.next() != root) ring.send(ring.part(x, first, last));
  });
  ring.transport.flush();
}

}  // namespace tern::detail
