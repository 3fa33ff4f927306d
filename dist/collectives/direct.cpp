#include <algorithm>

#include "tern/dist/collective.h"

namespace tern::detail {

void all_to_all(const Collective& c, ConstBytes x, const Cuts& send, Bytes y, const Cuts& receive) {
  const int n = c.size(), me = c.rank();
  // In step k each rank sends to one rank and receives from another, so that no rank is everyone's first.
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

}  // namespace tern::detail
