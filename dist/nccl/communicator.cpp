#include "tern/dist/nccl/communicator.h"

#include "tern/core/error.h"
#include "tern/dist/collectives/transfers.h"
#include "tern/dist/nccl/collectives.h"
#include "tern/dist/peer_error.h"

namespace tern::nccl {

Work NcclCommunicator::start(const CollectiveCall& call) {
  if (call.device() == Device{}) return host_->start(call);
  check(call.device() == device_, call.message.operation, ": tensors are on ", call.device(), ", expected ", device_,
        " or cpu");
  CollectiveCall numbered = call;
  numbered.message.sequence = host_->next_number();
  const auto issued = std::make_shared<cuda::Event>();
  issued->record(cuda::enter(device_));
  return queue_.add([this, call = numbered, agreed = agree(numbered), issued] {
    agreed();
    connection_.run(call.message, *issued, [&](ncclComm_t communicator, cudaStream_t stream) {
      enqueue(call, rank(), size(), communicator, stream);
    });
    count(call);
  });
}

/// Begins to compare the first of each kind of operation with the other ranks': NCCL would hang where they differ, or
/// give wrong sums. What is returned waits for it.
std::function<void()> NcclCommunicator::agree(const CollectiveCall& call) {
  const Message& message = call.message;
  if (!agreed_.emplace(message.operation, message.dtype, message.count, call.root).second) return [] {};
  const bool parts_may_differ = message.operation == Operation::all_to_all || message.operation == Operation::shift;
  return [same = host_->agree(message), parts = parts_may_differ ? agree_on_parts(call) : [] {}] {
    same.wait();
    parts();
  };
}

/// The lengths of the parts, which a message does not tell.
std::function<void()> NcclCommunicator::agree_on_parts(const CollectiveCall& call) {
  std::vector<int64_t> sent, expected;
  const detail::Transfers parts = detail::direct_transfers(call, rank(), size());
  for (int peer = 0; peer < size(); ++peer) {
    sent.push_back(parts.sends[peer].count());
    expected.push_back(parts.receives[peer].count());
  }
  const Tensor mine = Tensor::from<int64_t>({size()}, sent), theirs = Tensor::empty_like(mine);
  const Work told = host_->all_to_all(mine, theirs, Account::overhead);
  return [this, told, theirs, expected, message = call.message] {
    told.wait();
    const auto found = theirs.span<int64_t>();
    for (int peer = 0; peer < size(); ++peer)
      if (found[peer] != expected[peer])
        host_->transport().fail(join({"expects ", expected[peer], " elements from rank ", peer, ", which sends ",
                                      found[peer], " in ", message}));
  };
}

void NcclCommunicator::count(const CollectiveCall& call) {
  const detail::Volume moved = goes_directly(call) ? detail::moved_directly(call, rank(), size())
                                                   : detail::moved_around_ring(call, rank(), size());
  const uint64_t width = size_of(call.message.dtype);
  ledger_.sent(moved.sent * width);
  ledger_.received(moved.received * width);
  if (call.message.account == Account::overhead) return;
  ledger_.sent_payload(moved.sent * width);
  ledger_.received_payload(moved.received * width);
}

}  // namespace tern::nccl
