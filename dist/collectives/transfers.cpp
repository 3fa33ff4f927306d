#include "tern/dist/collectives/transfers.h"

#include "tern/core/error.h"

namespace tern::detail {
namespace {

Range part(const Cuts& cuts, int rank) { return {cuts[rank], cuts[rank + 1]}; }
Range whole(const Tensor& tensor) { return {0, tensor.defined() ? tensor.numel() : 0}; }

}  // namespace

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
      default: fail({call.message.operation, ": ranks do not deal with each other directly in it"});
    }
  }
  return moved;
}

Volume moved_around_ring(const CollectiveCall& call, int rank, int size) {
  // A rank passes on all parts, but for those of the ranks so many places after it; it gets what the one before sends.
  const auto all = [&](const Cuts& cuts, int times, std::initializer_list<int> but) {
    Volume moved = {times * cuts.back(), times * cuts.back()};
    for (const int after : but) {
      moved.sent -= part(cuts, (rank + after) % size).count();
      moved.received -= part(cuts, (rank + after + size - 1) % size).count();
    }
    return moved;
  };
  switch (call.message.operation) {
    case Operation::all_reduce_sum:
    case Operation::all_reduce_max: return all(even_cuts(call.x.numel(), size), 2, {1, 2});
    case Operation::reduce_scatter: return all(call.sends, 1, {0});
    case Operation::all_gather: return all(call.sends, 1, {1});
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

}  // namespace tern::detail
