#include "tern/dist/comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tern/core/crc32c.h"
#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"

namespace tern {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kDefaultPort = 29400;

int to_number(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check_input(error == std::errc() && end == text.data() + text.size() && value >= least && value <= most, name,
              ": found '", text, "', expected ", least, " to ", most);
  return value;
}

/// The variables in which one kind of launcher gives a rank its place.
struct Launcher {
  const char *name, *rank, *size, *local_size, *local_rank;
  const char* job;  ///< differs between the jobs of a machine
};
constexpr Launcher kOwn = {"environment",           "TERN_RANK",       "TERN_WORLD_SIZE",
                           "TERN_LOCAL_WORLD_SIZE", "TERN_LOCAL_RANK", nullptr};
constexpr Launcher kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", nullptr};
constexpr Launcher kOpenMpi = {"Open MPI",
                               "OMPI_COMM_WORLD_RANK",
                               "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK",
                               "PMIX_NAMESPACE"};
constexpr Launcher kMpich = {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", nullptr};
// A batch script and mpirun inside an allocation have SLURM_PROCID, too. Only a step of srun has several tasks.
constexpr Launcher kSlurm = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, "SLURM_LOCALID", "SLURM_JOB_ID"};

/// Reads places from one environment.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  /// Rank, size and the ranks of this machine; nothing if the launcher's variables are not set.
  std::optional<ClusterPlace> read(const Launcher& launcher) const {
    const auto rank = text(launcher.rank), size = text(launcher.size);
    if (!rank && !size) return {};
    if (&launcher == &kSlurm && !size) return {};
    check_input(rank && size, rank ? launcher.rank : launcher.size, " is set, expected ",
                rank ? launcher.size : launcher.rank, " beside it");
    ClusterPlace place;
    place.size = to_number(launcher.size, *size, 1, kMaxRanks);
    place.rank = to_number(launcher.rank, *rank, 0, place.size - 1);
    place.source = join({launcher.name, " (", launcher.rank, ", ", launcher.size, ")"});
    if (launcher.local_size && text(launcher.local_size))
      place.local_size = to_number(launcher.local_size, *text(launcher.local_size), 1, place.size);
    if (const auto local_rank = text(launcher.local_rank))
      place.local_rank = to_number(launcher.local_rank, *local_rank, 0, place.size - 1);
    else if (place.local_size == place.size)
      place.local_rank = place.rank;
    return place;
  }

  void find_master(const Launcher& launcher, ClusterPlace& place) const {
    const bool one_machine = place.local_size == place.size;
    if (const auto own = text("TERN_MASTER_ADDR"))
      place.master.host = *own;
    else if (one_machine)
      place.master.host = kLoopback;
    else
      place.master.host = host_told_by(launcher);
    place.master.port = port(launcher);
  }

  std::optional<std::string> text(const char* name) const {
    const char* value = environment_(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  }
  int number(const char* name, int otherwise) const {
    const auto value = text(name);
    return value ? to_number(name, *value, 0, INT32_MAX) : otherwise;
  }

 private:
  std::string host_told_by(const Launcher& launcher) const {
    if (&launcher == &kSlurm)
      if (const auto nodes = text("SLURM_STEP_NODELIST")) return first_host(*nodes);
    if (&launcher == &kTorchrun) {
      const auto host = text("MASTER_ADDR");
      check_input(host.has_value(), "MASTER_ADDR is not set, expected rank 0's address, or TERN_MASTER_ADDR");
      return *host;
    }
    fail_input({"TERN_MASTER_ADDR is not set, expected rank 0's address",
                &launcher == &kOwn ? "" : join({", which ", launcher.name, " does not give"})});
  }

  uint16_t port(const Launcher& launcher) const {
    constexpr int kMost = 65535;
    if (const auto own = text("TERN_MASTER_PORT")) return to_number("TERN_MASTER_PORT", *own, 1, kMost);
    if (&launcher == &kTorchrun) {
      const auto told = text("MASTER_PORT");
      check_input(told.has_value(), "MASTER_PORT is not set, expected a port of rank 0, or TERN_MASTER_PORT");
      // torchrun's own store may listen at the port that MASTER_PORT names.
      return to_number("MASTER_PORT", *told, 1, kMost - 1) + (text("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1 : 0);
    }
    if (const auto job = launcher.job ? text(launcher.job) : std::nullopt) {
      const std::string whole = *job + text("SLURM_STEP_ID").value_or("");
      return 20000 + crc32c(std::as_bytes(std::span(whole))) % 10000;  // below the system's ephemeral ports
    }
    return kDefaultPort;
  }

  const Environment& environment_;
};

}  // namespace

const char* process_environment(const char* name) { return std::getenv(name); }

void count_local_ranks(ClusterPlace& place) {
  if (!names_this_machine(place.master)) return;
  place.local_size = place.size;
  place.local_rank = place.rank;
}

std::optional<ClusterPlace> find_place(const Environment& environment) {
  const Reader reader(environment);
  auto place = reader.read(kOwn);
  if (place) {
    reader.find_master(kOwn, *place);
    if (!reader.text(kOwn.local_size)) count_local_ranks(*place);
    place->epoch = static_cast<uint32_t>(reader.number("TERN_EPOCH", 0));
    place->supervised = reader.text("TERN_SUPERVISOR").has_value();
    return place;
  }
  const Launcher* found = nullptr;
  for (const Launcher* launcher : {&kTorchrun, &kOpenMpi, &kMpich, &kSlurm}) {
    const auto told = reader.read(*launcher);
    if (!told || told->size == 1) continue;
    if (found) {
      // If another launcher runs inside a Slurm allocation, Slurm's variables describe the whole allocation.
      check_input(launcher == &kSlurm || (told->rank == place->rank && told->size == place->size), place->source,
                  " say rank ", place->rank, " of ", place->size, ", ", told->source, " say rank ", told->rank, " of ",
                  told->size, ": set TERN_RANK and TERN_WORLD_SIZE");
      continue;
    }
    place = told;
    found = launcher;
  }
  if (!found) return {};
  if (found == &kSlurm)
    if (const auto tasks = reader.text("SLURM_STEP_TASKS_PER_NODE"))
      place->local_size = tasks_on_node(*tasks, reader.number("SLURM_NODEID", 0));
  reader.find_master(*found, *place);
  // Each machine's torchrun counts for itself, so the ranks of one job can differ: this is no epoch.
  if (found == &kTorchrun) place->restarted_here = reader.number("TORCHELASTIC_RESTART_COUNT", 0) > 0;
  return place;
}

std::optional<ClusterPlace> find_mpi_place(const Environment& environment) {
  const Reader reader(environment);
  for (const Launcher* launcher : {&kOpenMpi, &kMpich, &kSlurm})
    if (const auto place = reader.read(*launcher)) return place;
  return {};
}

Device gpu_of(const ClusterPlace& place, int visible) { return {DeviceType::cuda, place.local_rank % visible}; }

std::string first_host(const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t close = list.find(']', i);
    check_input(close != std::string::npos, "SLURM_STEP_NODELIST: found '", list, "', expected ']' after '['");
    host += list.substr(i + 1, list.find_first_of(",-]", i) - i - 1);
    i = close;
  }
  return host;
}

int tasks_on_node(const std::string& list, int index) {
  constexpr const char* kName = "SLURM_STEP_TASKS_PER_NODE";
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string run = list.substr(begin, end - begin);
    const size_t times = run.find("(x");
    const int tasks = to_number(kName, run.substr(0, times), 1, kMaxRanks);
    const int nodes =
        times == std::string::npos ? 1 : to_number(kName, run.substr(times + 2, run.size() - times - 3), 1, INT32_MAX);
    if (index < nodes) return tasks;
    index -= nodes;
    begin = end + 1;
  }
  fail_input({kName, ": found '", list, "', which ends before node ", index});
}

}  // namespace tern
