#pragma once

#include "tern/dist/comm/communicator.h"

namespace tern::test {

/// The communicator of this rank. A process has one.
Communicator& mpi_job();

/// Breaks the job as `name` says. Returns false if there is no such way.
bool break_job(const std::string& name);

}  // namespace tern::test
