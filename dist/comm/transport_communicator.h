#pragma once

#include <memory>

#include "tern/dist/comm/communicator.h"

namespace tern {

/// A communicator over any transport. Its algorithms work in the CPU's memory: CUDA tensors are copied there and back,
/// so that ranks may share a device.
class TransportCommunicator final : public Communicator {
 public:
  explicit TransportCommunicator(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  Traffic traffic() const override { return transport_->traffic(); }
  void abandon(const std::string& cause) override;

  Work start(const CollectiveCall& call) override;
  /// The number of an operation that runs elsewhere, in the order of those here.
  uint32_t next_number() { return ++sequence_; }
  /// Done once every rank has called it for the same operation; a PeerError where theirs is another.
  Work agree(const Message& message);
  Transport& transport() { return *transport_; }

 private:
  std::unique_ptr<Transport> transport_;
  uint32_t sequence_ = 0;
  WorkQueue queue_;  // last: its thread uses the transport
};

}  // namespace tern
