#pragma once

#include <set>
#include <string>
#include <tuple>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/comm/mpi/library.h"
#include "tern/dist/comm/mpi/watchdog.h"

namespace tern::mpi {

/// MPI's life in this process, from `mpi_place` to the end of the communicator.
class Session {
 public:
  Session();
  ~Session() { MPI_Finalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

/// The communicator of make_mpi. Its operations run one after the other, on the queue's thread or on one that waits.
class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(const Deadlines& deadlines);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Traffic traffic() const override { return ledger_.traffic(); }
  JobState state() const override;
  FlightRecord flight_record() const override { return recorder_.record(rank_, state()); }
  void abandon(const std::string& cause) override;

 private:
  Work start(const CollectiveCall& call) override;
  template <class Body>
  void watched(const Label& label, const Body& body);
  void agree(const Label& label);
  void run(const CollectiveCall& call);
  void transfer(const CollectiveCall& call);
  void finish(MPI_Request& receive, int peer, int64_t expected, const Message& message);
  void count(const CollectiveCall& call);

  Session session_;
  Group group_, agreement_;
  int rank_, size_;
  std::string job_;
  FlightRecorder recorder_;
  Watchdog watchdog_;
  uint32_t sequence_ = 0;
  std::set<std::tuple<Operation, DType, uint64_t, int>> agreed_;  ///< kinds of operations, with their root
  Ledger ledger_;
  WorkQueue queue_;  // last: its thread uses the other members
};

}  // namespace tern::mpi
