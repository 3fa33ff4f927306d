#include "tern/trainer/job/launch.h"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "tern/core/atomic_file.h"
#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/join.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/comm/mpi.h"
#include "tern/dist/comm/nccl.h"
#include "tern/dist/comm/transport_communicator.h"
#include "tern/optim/checkpoint.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/job/supervisor.h"
#include "tern/trainer/rank/flight.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/recipe.h"
#include "tern/trainer/run/trainer.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

/// Collects the errors of the ranks of a job, to find the one that ended it. Thread-safe.
class FirstCause {
 public:
  /// Records the current exception. A PeerError only says that another rank ended. The cause is the error of that other
  /// rank.
  void note() {
    const std::lock_guard lock(mutex_);
    try {
      throw;
    } catch (const PeerError&) {
      if (!lost_) lost_ = std::current_exception();
    } catch (...) {
      if (!own_) own_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (own_) std::rethrow_exception(own_);
    if (lost_) std::rethrow_exception(lost_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr own_, lost_;
};

/// `check` is check_writable or check_writable_folder.
void check_place(const char* flag, const std::string& path, void (*check)(const fs::path&)) {
  if (path.empty()) return;
  try {
    check(path);
  } catch (const InputError& error) {
    throw InputError(join({flag, ": ", error.what()}));
  }
}

/// Whether `folder` does not exist yet, and the file `path` is to lie in it.
bool is_in_missing_folder(const std::string& path, const std::string& folder) {
  const fs::path name = fs::path(path).filename();
  std::error_code unknown;
  if (folder.empty() || name.empty() || name == "." || name == ".." || fs::exists(folder, unknown)) return false;
  const auto expected = fs::weakly_canonical(fs::absolute(fs::path(folder) / name), unknown);
  return !unknown && fs::weakly_canonical(fs::absolute(path), unknown) == expected && !unknown;
}

/// Throws InputError if two outputs have the same path, because they would overwrite each other. A run may save to the
/// file that it began from.
void check_distinct(const TrainSettings& s) {
  const auto place_of = [](const std::string& path) { return fs::weakly_canonical(fs::absolute(path)); };
  const std::pair<const char*, const std::string*> places[] = {{"--log", &s.log},
                                                               {"--plot", &s.plot},
                                                               {"--save", &s.save},
                                                               {"--tensorboard", &s.tensorboard},
                                                               {"--checkpoint", &s.checkpoint},
                                                               {"--cache", &s.cache}};
  std::map<fs::path, const char*> taken;
  if (!s.init.empty() && (s.save.empty() || place_of(s.init) != place_of(s.save)))
    taken.emplace(place_of(s.init), "--init");
  for (const auto& [flag, path] : places) {
    if (path->empty()) continue;
    const auto [place, is_new] = taken.emplace(place_of(*path), flag);
    check_input(is_new, place->second, " and ", flag, ": both name ", *path, ", expected different paths");
  }
}

std::unique_ptr<Transport> shaped(const TrainSettings& settings, std::unique_ptr<Transport> transport) {
  return settings.link.empty() ? std::move(transport) : make_shaped(std::move(transport), parse_link(settings.link));
}

/// Runs a rank. If it ends by an error of its own, tells the cause to the others. Wrong numbers of an operation that
/// has failed can lead to other errors; then throws the failure.
void tell_others(Communicator& communicator, const std::function<void()>& rank) {
  try {
    rank();
  } catch (const Interrupted&) {
    throw;
  } catch (const PeerError&) {
    throw;
  } catch (const std::bad_alloc&) {
    communicator.abandon("out of memory");
    throw;
  } catch (const std::exception& error) {
    communicator.confirm();
    communicator.abandon(error.what());
    throw;
  }
}

void train_threads(const Application& application, const TrainSettings& settings, Console& console) {
  const InterruptGuard interrupt;
  const RunData data = load_run_data(settings);
  const auto train = [&](std::unique_ptr<Transport> transport) {
    TransportCommunicator communicator(shaped(settings, std::move(transport)));
    const int ranks = communicator.size();
    FlightWatch watch(communicator, flight_folder(settings), communicator.rank() == 0);
    tell_others(communicator, [&] {
      Trainer(application, settings,
              {.data = data,
               .interrupt = interrupt,
               .out = console.out,
               .communicator = &communicator,
               .here = {.of_process = ranks, .of_machine = ranks},
               .flight = &watch})
          .train();
    });
  };
  run_rank_threads(static_cast<int>(*settings.workers), static_cast<int>(settings.threads), train,
                   rank_deadlines(settings));
}

/// Returns the listener that rank 0 inherits from the supervisor, or the listener that rank 0 opens at --bind.
/// Without both, returns none. Then rank 0 listens at the address that the other ranks know.
std::optional<detail::Listener> find_listener(const TrainSettings& settings, const ClusterPlace& place) {
  if (place.rank != 0) return {};
  if (const char* inherited = std::getenv("TERN_LISTENER"); inherited && place.supervised)
    return detail::Listener::adopt(std::atoi(inherited));
  if (settings.bind.empty()) return {};
  Address address = listening_address(settings);
  if (address.port == 0) address.port = place.master.port;
  return detail::Listener(address);
}

/// Returns a function that prints which ranks have not joined yet. If there is a supervisor, only rank 0 prints, for
/// all ranks.
std::function<void(const std::string&)> note_for(const TrainSettings& settings, const ClusterPlace& place,
                                                 Console& console) {
  if (settings.quiet || (place.supervised && place.rank != 0)) return {};
  return [&console](const std::string& text) { console.out.print("note: " + text); };
}

/// The place as MPI tells it: the launcher's variables say nothing about the MPI that this program uses.
ClusterPlace place_in_mpi(const ClusterPlace& told) {
  ClusterPlace place = mpi_place();
  check_input(place.rank == told.rank && place.size == told.size, "--transport mpi: ", place.source, " says rank ",
              place.rank, " of ", place.size, ", ", told.source, " say rank ", told.rank, " of ", told.size,
              "; expected the mpirun of ", place.source);
  place.source = told.source;
  return place;
}

Job connect(const TrainSettings& settings, const ClusterPlace& place, Console& console) {
  if (settings.transport == RankTransport::mpi)
    return {.rank = place.rank,
            .size = place.size,
            .device = parse_device(settings.device),
            .communicator = make_mpi(rank_deadlines(settings)),
            .place = place};
  JoinOptions options = {.device = parse_device(settings.device),
                         .nccl = settings.transport == RankTransport::nccl,
                         .deadlines = rank_deadlines(settings),
                         .wire = settings.wire,
                         .note = note_for(settings, place, console)};
  if (!settings.link.empty()) options.link = parse_link(settings.link);
  return join(place, options, find_listener(settings, place));
}

/// "torchrun (RANK, WORLD_SIZE), rank 0 at 10.0.0.1:29500"
std::string told_by(const ClusterPlace& place, const TrainSettings& settings) {
  if (settings.transport == RankTransport::mpi)
    return place.source + "; MPI sends unprotected, and there is no token: the launcher decides who joins";
  const bool leaves_machine = settings.transport == RankTransport::nccl && place.local_size < place.size;
  return join({place.source, ", rank 0 at ", place.master,
               leaves_machine ? "; NCCL sends unprotected: the network must be a trusted one" : ""});
}

/// The memory that the supervisor made for the pulses of all ranks; null if there is no supervisor.
std::unique_ptr<PulseMemory> inherited_pulses(const ClusterPlace& place) {
  const char* const descriptor = std::getenv("TERN_PULSE");
  return descriptor && place.supervised ? std::make_unique<PulseMemory>(std::atoi(descriptor)) : nullptr;
}

/// A restarted job continues from the checkpoint that the former ranks left.
void go_on(TrainSettings& s, bool restarted) {
  if (restarted && !s.checkpoint.empty()) s.resume |= latest_checkpoint(s.checkpoint).has_value();
}

/// Throws InputError if a run that begins would replace another one.
void check_new_run(const TrainSettings& s) {
  if (s.predict.empty() && !s.eval_only && !s.resume && !s.checkpoint.empty()) check_no_run(s.checkpoint);
}

/// Whether one rank or more say so.
bool is_on_any_rank(Communicator& communicator, bool here) {
  Tensor found = Tensor::full({1}, here, {.dtype = DType::i64});
  communicator.all_reduce(found, Reduction::max, Account::overhead).wait();
  return found.item() > 0;
}

void train_rank(const Application& application, TrainSettings settings, ClusterPlace place, Console& console) {
  std::optional<InterruptGuard> interrupt;
  if (place.supervised) interrupt.emplace();  // otherwise Ctrl-C ends a rank that waits for others to join
  go_on(settings, place.epoch > 0);
  if (place.rank == 0) {
    check_places(settings);
    if (!place.restarted_here) check_new_run(settings);
  }
  if (settings.transport == RankTransport::nccl && settings.device == kAnyGpu)
    settings.device = to_string(gpu_of(place, cuda_device_count()));
  if (settings.transport == RankTransport::mpi) place = place_in_mpi(place);
  prepare_machine(settings, place.local_size);
  // The ranks join before they load data. If a rank fails after that, the other ranks hear it at once.
  const Job job = connect(settings, place, console);
  if (!interrupt) interrupt.emplace();
  FlightWatch watch(*job.communicator, flight_folder(settings), !place.supervised);
  const auto pulses = inherited_pulses(place);
  try {
    tell_others(*job.communicator, [&] {
      if (place.restarted_here) {
        go_on(settings, is_on_any_rank(*job.communicator, *place.restarted_here));
        if (place.rank == 0) check_new_run(settings);
      }
      Trainer(application, settings,
              {load_run_data(settings),
               *interrupt,
               console.out,
               job.communicator.get(),
               place.supervised ? "" : told_by(place, settings),
               pulses ? pulses->of(place.rank) : Pulse(),
               {.of_machine = place.local_size},
               &watch})
          .train();
    });
  } catch (const Interrupted&) {
    if (place.rank == 0) throw;
    throw Interrupted("");  // rank 0 prints the message for all
  }
}

/// Checks NCCL and the GPUs once for this machine. Without this check, each rank would report the same failure.
void check_gpus(const TrainSettings& settings) {
  nccl_version();
  const int64_t workers = *settings.workers, gpus = cuda_device_count();
  check_input(workers <= gpus, "--workers: found ", workers, ", expected ", gpus,
              " or fewer with --transport nccl: ", "this machine has ", gpus, gpus == 1 ? " GPU" : " GPUs");
  check_input(workers == 1 || settings.device == kAnyGpu, "--device: found ", settings.device, " for ", workers,
              " workers, expected cuda: with --transport nccl each needs a GPU of its own");
}

}  // namespace

void run_rank_threads(int ranks, int threads, const std::function<void(int rank)>& body) {
  FirstCause cause;
  std::promise<bool> all_run;
  const std::shared_future<bool> go = all_run.get_future();
  std::vector<std::thread> running;
  try {
    for (int rank = 0; rank < ranks; ++rank)
      running.emplace_back([&, rank] {
        try {
          if (!go.get()) return;  // a rank would wait for those that the system gave no thread
          set_thread_count(threads);
          body(rank);
        } catch (...) {
          cause.note();
        }
      });
  } catch (...) {
    cause.note();
  }
  all_run.set_value(std::ssize(running) == ranks);
  for (auto& rank : running) rank.join();
  cause.rethrow();
}

void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body,
                      const Deadlines& deadlines) {
  auto transports = make_in_process(ranks, deadlines);
  run_rank_threads(ranks, threads, [&](int rank) { body(std::move(transports[static_cast<size_t>(rank)])); });
}

void check_places(const TrainSettings& s) {
  const bool trains = !s.eval_only && s.predict.empty();
  if (trains) check_place("--checkpoint", s.checkpoint, check_writable_folder);
  const auto check_file = [&](const char* flag, const std::string& path) {
    // The run makes the folder of --checkpoint before it writes a file there.
    if (!trains || !is_in_missing_folder(path, s.checkpoint)) check_place(flag, path, check_writable);
  };
  check_file("--log", s.log);
  check_file("--plot", s.plot);
  check_file("--save", s.save);
  check_place("--tensorboard", s.tensorboard, check_writable_folder);
  check_place("--cache", s.cache, check_writable_folder);
  check_distinct(s);
  check_input(s.init.empty() || std::ifstream(s.init).good(), "--init: ", s.init, ": no such file, or not readable");
}

int launch(const Application& application, TrainSettings settings, const std::optional<ClusterPlace>& place,
           Console& console, char** argv) {
  if (place || settings.workers)
    std::signal(SIGUSR1, SIG_IGN);  // it must not end a rank that cannot write its flight record yet
  if (place) {
    train_rank(application, settings, *place, console);
    return kDone;
  }
  check_places(settings);
  check_new_run(settings);
  if (settings.transport == RankTransport::nccl) check_gpus(settings);
  if (settings.transport.value_or(RankTransport::inproc) != RankTransport::inproc)
    return Supervisor(application.name, settings, console, argv).run();
  prepare_machine(settings, static_cast<int>(settings.workers.value_or(1)));
  if (settings.workers) {
    train_threads(application, settings, console);
  } else {
    const InterruptGuard interrupt;
    Trainer(application, settings, {load_run_data(settings), interrupt, console.out}).train();
  }
  return kDone;
}

}  // namespace tern::trainer
