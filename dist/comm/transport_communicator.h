#pragma once

#include <memory>

#include "tern/dist/comm/communicator.h"

namespace tern {

/// A communicator over any transport. Its algorithms work in CPU memory. CUDA tensors are copied to the CPU and back,
/// so that ranks may share a device.
class TransportCommunicator final : public Communicator {
 public:
  explicit TransportCommunicator(std::unique_ptr<Transport> transport)
      : recorder_(transport->size()), transport_(make_recorded(std::move(transport), recorder_)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  Traffic traffic() const override { return transport_->traffic(); }
  JobState state() const override { return transport_->state(); }
  FlightRecord flight_record() const override { return recorder_.record(rank(), transport_->state()); }
  void abandon(const std::string& cause) override;

  Work start(const CollectiveCall& call) override;
  /// The sequence number for an operation that runs elsewhere, in one order with the operations that run here.
  uint32_t next_number() { return ++sequence_; }
  /// Done after every rank has called it for the same operation. Its wait throws PeerError if the operations differ.
  Work agree(const Message& message);
  Transport& transport() { return *transport_; }
  FlightRecorder& recorder() { return recorder_; }

 private:
  FlightRecorder recorder_;
  std::unique_ptr<Transport> transport_;
  uint32_t sequence_ = 0;
  WorkQueue queue_;  // last: its thread uses the transport
};

}  // namespace tern
