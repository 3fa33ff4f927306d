#include "tern/dist/comm/transport_communicator.h"

#include "tern/core/error.h"
#include "tern/dist/comm/collectives.h"
#include "tern/dist/comm/failure.h"

namespace tern {
namespace {

using detail::Collective;

std::span<std::byte> bytes_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<std::byte*>(tensor.raw_data()), tensor.bytes()};
}

/// Runs a call on CPU tensors.
void run(const Collective& c, const CollectiveCall& call) {
  const auto x = bytes_of(call.x), y = bytes_of(call.y);
  switch (c.message.operation) {
    case Operation::broadcast: return ring_broadcast(c, x, call.root);
    case Operation::fan_out: return detail::fan_out(c, x, call.root);
    case Operation::all_reduce_sum: return detail::all_reduce(c, x, Reduction::sum);
    case Operation::all_reduce_max: return detail::all_reduce(c, x, Reduction::max);
    case Operation::reduce_scatter: return detail::reduce_scatter(c, x, y, call.sends);
    case Operation::all_gather: return detail::all_gather(c, x, y, call.sends);
    case Operation::all_to_all: return detail::all_to_all(c, x, call.sends, y, call.receives);
    case Operation::scatter: return detail::scatter(c, x, y, call.root, call.sends);
    case Operation::gather: return detail::gather(c, x, y, call.root, call.sends);
    case Operation::shift: return detail::shift(c, x, y);
    case Operation::barrier: return detail::barrier(c);
    case Operation::none: break;
  }
  fail({"communicator: found ", c.message, ", expected an operation"});
}

}  // namespace

void TransportCommunicator::abandon(const std::string& cause) {
  try {
    transport_->fail("ended: " + cause);
  } catch (const PeerError&) {  // the other ranks throw it as well
  }
}

Work TransportCommunicator::start(const CollectiveCall& call) {
  CollectiveCall numbered = call;
  numbered.message.sequence = next_number();
  recorder_.queue(numbered.recorded());
  return queue_.add([this, call = std::move(numbered)] {
    recorder_.run(call.message.sequence, [&] {
      const Collective collective = {*transport_, call.message};
      detail::run_on_cpu(call, [&](const CollectiveCall& on_cpu) { run(collective, on_cpu); });
    });
  });
}

Work TransportCommunicator::agree(const Message& message) {
  Message labelled = message;
  labelled.account = Account::overhead;
  return queue_.add([this, labelled] { detail::barrier({*transport_, labelled}); });
}

}  // namespace tern
