#pragma once

#include <set>
#include <tuple>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/nccl.h"
#include "tern/dist/comm/nccl/connection.h"
#include "tern/dist/comm/nccl/library.h"
#include "tern/dist/comm/transport_communicator.h"

namespace tern::nccl {

/// See make_nccl. Operations on CUDA tensors run in their order, those on CPU tensors in theirs.
class NcclCommunicator final : public Communicator {
 public:
  /// `id` is the same on all ranks.
  NcclCommunicator(std::unique_ptr<TransportCommunicator> host, const ncclUniqueId& id, const NcclOptions& options)
      : host_(std::move(host)),
        device_(options.device),
        connection_(host_->transport(), device_, id, options.deadlines) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  Traffic traffic() const override { return host_->traffic() + ledger_.traffic(); }
  void abandon(const std::string& cause) override { host_->abandon(cause); }

 private:
  Work start(const CollectiveCall& call) override;
  std::function<void()> agree(const CollectiveCall& call);
  std::function<void()> agree_on_parts(const CollectiveCall& call);
  void count(const CollectiveCall& call);

  std::unique_ptr<TransportCommunicator> host_;
  Device device_;
  std::set<std::tuple<Operation, DType, uint64_t, int>> agreed_;  ///< kinds of operations, with their root
  Ledger ledger_;
  Connection connection_;
  WorkQueue queue_;  // last: its thread uses the rest
};

}  // namespace tern::nccl

namespace tern::nccl {

/// Whether its parts go from rank to rank, one by one; NCCL has no call for it.
bool goes_directly(const CollectiveCall& call);

/// Puts an operation on tensors of the stream's device into the stream.
void enqueue(const CollectiveCall& call, int rank, int size, ncclComm_t communicator, cudaStream_t stream);

}  // namespace tern::nccl
