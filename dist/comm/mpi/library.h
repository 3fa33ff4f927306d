#pragma once

#include <mpi.h>

#include <string>

#include "tern/dist/comm/transport.h"

namespace tern::mpi {

/// Throws Error with MPI's own text if a call failed.
void check_mpi(int result, const char* operation);
void check_mpi(int result, const Message& operation);

/// A communicator of all ranks whose messages meet no others'. Its calls return their errors. Owns it.
class Group {
 public:
  Group();
  ~Group() { MPI_Comm_free(&group_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  operator MPI_Comm() const { return group_; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm group_ = MPI_COMM_NULL;
};

/// Prints the sentence and ends all processes of the job.
[[noreturn]] void end_job(const std::string& sentence);

}  // namespace tern::mpi
