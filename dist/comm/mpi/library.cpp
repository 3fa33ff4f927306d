#include "tern/dist/comm/mpi/library.h"

#include <cstdio>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/dist/comm/mpi.h"

namespace tern::mpi {
namespace {

[[noreturn]] void fail_with(int result, const std::string& operation) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  fail({operation, ": MPI: ", text});
}

}  // namespace

void check_mpi(int result, const char* operation) {
  if (result != MPI_SUCCESS) fail_with(result, operation);
}

void check_mpi(int result, const Message& operation) {
  if (result != MPI_SUCCESS) fail_with(result, to_string(operation));
}

Group::Group() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &group_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

int Group::rank() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(group_, &rank), "MPI_Comm_rank");
  return rank;
}

int Group::size() const {
  int size = 1;
  check_mpi(MPI_Comm_size(group_, &size), "MPI_Comm_size");
  return size;
}

void end_job(const std::string& sentence) {
  std::fputs(("tern: " + printable(sentence) + '\n').c_str(), stderr);
  MPI_Abort(MPI_COMM_WORLD, kMpiAborted);
  std::_Exit(kMpiAborted);
}

}  // namespace tern::mpi

namespace tern {

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  mpi::check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string all = text;
  return all.substr(0, all.find_first_of(",\n"));
}

ClusterPlace mpi_place() {
  int is_started = 0, level = MPI_THREAD_SINGLE;
  mpi::check_mpi(MPI_Initialized(&is_started), "MPI_Initialized");
  if (!is_started) mpi::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  mpi::check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  check_input(level == MPI_THREAD_MULTIPLE, "MPI: ", mpi_version(), " lacks MPI_THREAD_MULTIPLE, expected it");
  ClusterPlace place = {.source = mpi_version()};
  MPI_Comm machine = MPI_COMM_NULL;
  mpi::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank), "MPI_Comm_rank");
  mpi::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &place.size), "MPI_Comm_size");
  mpi::check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
                 "MPI_Comm_split_type");
  mpi::check_mpi(MPI_Comm_rank(machine, &place.local_rank), "MPI_Comm_rank");
  mpi::check_mpi(MPI_Comm_size(machine, &place.local_size), "MPI_Comm_size");
  mpi::check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  return place;
}

}  // namespace tern
