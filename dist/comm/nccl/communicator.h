#pragma once

#include <set>
#include <tuple>

#include "tern/dist/comm/collectives.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/nccl.h"
#include "tern/dist/comm/nccl/connection.h"
#include "tern/dist/comm/nccl/library.h"
#include "tern/dist/comm/transport_communicator.h"

namespace tern::nccl {

/// The communicator of make_nccl. Operations on CUDA tensors run in their own order, and operations on CPU tensors in
/// theirs. The Work of an operation on CUDA tensors is done once the operation is in NCCL's stream. An operation that
/// is recorded runs with each replay, which is one more operation for ledger, flight record and watchdog.
class NcclCommunicator final : public Communicator {
 public:
  /// `id` is the same on all ranks.
  NcclCommunicator(std::unique_ptr<TransportCommunicator> host, const ncclUniqueId& id, const NcclOptions& options)
      : host_(std::move(host)), device_(options.device), connection_(*host_, device_, id, options.deadlines) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  Traffic traffic() const override { return host_->traffic() + ledger_.traffic(); }
  JobState state() const override { return host_->state(); }
  FlightRecord flight_record() const override { return host_->flight_record(); }
  void abandon(const std::string& cause) override { host_->abandon(cause); }
  void confirm() const override { connection_.confirm(); }
  bool can_be_recorded() const override { return true; }

 private:
  using Kind = std::tuple<Operation, DType, uint64_t, int>;  ///< of operations, with their root

  Work start(const CollectiveCall& call) override;
  Work record(const CollectiveCall& call);
  std::function<void()> agree(const CollectiveCall& call);
  std::function<void()> agree_on_parts(const CollectiveCall& call);
  detail::Volume moved_by(const CollectiveCall& call) const;

  std::unique_ptr<TransportCommunicator> host_;
  Device device_;
  std::set<Kind> agreed_;
  Ledger ledger_;
  Connection connection_;
  WorkQueue queue_;  // last: its thread uses the other members
};

}  // namespace tern::nccl

namespace tern::nccl {

/// Whether the parts of the operation travel one by one from rank to rank, because NCCL has no call for it.
bool goes_directly(const CollectiveCall& call);

/// Queues an operation on the stream. The tensors are on the stream's device.
void enqueue(const CollectiveCall& call, int rank, int size, ncclComm_t communicator, cudaStream_t stream);

}  // namespace tern::nccl
