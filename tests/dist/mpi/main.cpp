// A rank of an MPI job: runs the tables of every communicator, or `--break NAME` breaks the job in one way.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tern/core/program.h"
#include "tern/dist/comm/mpi.h"
#include "tests/dist/mpi/job.h"

namespace tern::test {
namespace {

std::unique_ptr<Communicator> communicator;

}  // namespace

Communicator& mpi_job() { return *communicator; }

}  // namespace tern::test

int main(int argc, char** argv) {
  using namespace tern;
  using namespace tern::test;
  wait_passively(argc, argv);
  const bool breaks = argc == 3 && std::string(argv[1]) == "--break";
  const Deadlines quick = {.heartbeat = std::chrono::milliseconds(100),
                           .dead_after = std::chrono::seconds(2),
                           .operation = std::chrono::seconds(4)};
  communicator = make_mpi(breaks ? quick : Deadlines{});
  testing::GTEST_FLAG(brief) = communicator->rank() > 0;
  testing::InitGoogleTest(&argc, argv);
  const int code = !breaks ? RUN_ALL_TESTS() : break_job(argv[2]) ? 0 : 2;
  communicator.reset();
  return code;
}
