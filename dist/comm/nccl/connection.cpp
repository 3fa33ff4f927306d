#include "tern/dist/comm/nccl/connection.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/nccl.h"
#include "tern/dist/comm/nccl/library.h"

namespace tern {
namespace nccl {

void check_nccl(ncclResult_t result, const std::string& operation, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const std::string last = library().get_last_error(communicator);
  fail({operation, ": NCCL: ", library().get_error_string(result), last.empty() ? "" : " (" + last + ")"});
}

}  // namespace nccl

std::string nccl_version() {
  int version = 0;
  nccl::check_nccl(nccl::library().get_version(&version), "version");
  return join({version / 10000, ".", version / 100 % 100, ".", version % 100});
}

}  // namespace tern

namespace tern::nccl {
namespace {

/// A wait spins first, because NCCL may be quicker than the wake-up of a sleeping thread.
constexpr auto kSpin = std::chrono::microseconds(100), kNap = std::chrono::microseconds(20);

/// The time between two looks of the watchdog.
constexpr auto kLook = std::chrono::milliseconds(1);

/// NCCL sometimes hangs when it ends. After this time the wait for it stops.
constexpr auto kEndLimit = std::chrono::seconds(10);

/// Whether NCCL has no work left, except work in streams.
bool settled(ncclComm_t communicator, const std::string& operation) {
  ncclResult_t state = ncclSuccess;
  check_nccl(library().comm_get_async_error(communicator, &state), operation, communicator);
  check_nccl(state, operation, communicator);
  return state == ncclSuccess;
}

void leave(ncclComm_t communicator) {
  ncclResult_t state = library().comm_finalize(communicator);
  const auto deadline = Clock::now() + kEndLimit;
  while (state == ncclInProgress && Clock::now() < deadline) {
    std::this_thread::sleep_for(kNap);
    library().comm_get_async_error(communicator, &state);
  }
  if (state == ncclSuccess)
    library().comm_destroy(communicator);
  else
    library().comm_abort(communicator);
}

}  // namespace

Stream::Stream(Device device) {
  cuda::enter(device);
  cuda::check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "nccl");
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

Connection::Connection(TransportCommunicator& job, Device device, const ncclUniqueId& id, const Deadlines& deadlines)
    : job_(job.transport()),
      recorder_(job.recorder()),
      device_(device),
      patience_(deadlines.operation),
      exceptions_(std::uncaught_exceptions()),
      stream_(device) {
  try {
    guarded([&] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      check_nccl(library().comm_init_rank_config(&communicator_, job_.size(), id, job_.rank(), &config), "connect");
      settle("connect", deadlines.rendezvous,
             "was not connected by NCCL within " + detail::seconds(deadlines.rendezvous));
      watchdog_ = std::thread([this] { watch(); });
    });
  } catch (const PeerError&) {
    await_end();
    throw;
  }
}

Connection::~Connection() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  changed_.notify_one();
  watchdog_.join();
  end(std::uncaught_exceptions() > exceptions_ || job_failed(), "");
  await_end();
}

bool Connection::job_failed() const {
  try {
    job_.throw_if_failed();
    return false;
  } catch (const PeerError&) {
    return true;
  }
}

/// Calls `use` with NCCL's communicator while no other thread uses it.
template <class Use>
auto Connection::use(const Use& use) {
  const std::lock_guard lock(mutex_);
  if (!communicator_) throw PeerError(failure_);
  return use(communicator_);
}

void Connection::start(const std::shared_ptr<DeviceWork>& work, std::vector<Tensor> tensors, const Enqueue& enqueue) {
  guarded([&] {
    job_.reach(work->message());
    job_.throw_if_failed();
    use([&](ncclComm_t) { starting_ = std::move(tensors); });
    put(*work, enqueue);
    use([&](ncclComm_t) {
      work->enqueued(stream_.get(), starting_);
      watch_from_now(work);
      starting_.clear();
    });
  });
}

void Connection::record(DeviceWork& work, std::vector<Tensor> tensors, const StepWord& done, const Enqueue& enqueue) {
  ending_on_failure([&] {
    job_.throw_if_failed();
    try {
      put(work, enqueue);
      done.record(stream_.get());
      work.enqueued(stream_.get(), std::move(tensors));
    } catch (const PeerError&) {
      throw;
    } catch (const Error& error) {
      if (works()) throw;
      job_.fail(join({error.what(), ", in a recording"}));
    }
  });
}

void Connection::replay(std::shared_ptr<WorkUnderWay> work) {
  ending_on_failure([&] {
    job_.reach(work->message());
    job_.throw_if_failed();
    use([&](ncclComm_t) { watch_from_now(std::move(work)); });
  });
}

/// Puts an operation into the stream, after the kernels before `work`.
void Connection::put(const DeviceWork& work, const Enqueue& enqueue) {
  cuda::enter(device_);
  work.follow(stream_.get());
  use([&](ncclComm_t communicator) { enqueue(communicator, stream_.get()); });
  // A call that NCCL still works on is not in the stream yet; it may connect to other ranks first.
  settle(to_string(work.message()), patience_, "");
}

/// The caller holds the mutex.
void Connection::watch_from_now(std::shared_ptr<WorkUnderWay> work) {
  if (under_way_.empty()) progress_ = Clock::now();
  under_way_.push_back(std::move(work));
  changed_.notify_one();
}

void Connection::confirm() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw PeerError(failure_);
}

/// Turns every error into a PeerError, which ends the job and this connection.
template <class Step>
void Connection::guarded(const Step& step) {
  ending_on_failure([&] {
    try {
      step();
    } catch (const PeerError&) {
      throw;
    } catch (const std::exception& error) {
      job_.fail(error.what());
    }
  });
}

/// A PeerError ends this connection. Does not wait for that: NCCL's end waits for the recordings that use it, and the
/// caller may have to free them first. They keep their tensors.
template <class Step>
void Connection::ending_on_failure(const Step& step) {
  try {
    step();
  } catch (const PeerError& failure) {
    end(true, failure.what());
    throw;
  }
}

/// Waits until NCCL has no work left, except work in streams. `late` is the cause if the time limit passes, as in
/// Transport::fail.
void Connection::settle(const std::string& operation, Clock::duration limit, const std::string& late) {
  const auto begin = Clock::now();
  while (!use([&](ncclComm_t communicator) { return settled(communicator, operation); })) {
    job_.throw_if_failed();
    const auto waited = Clock::now() - begin;
    if (waited >= limit) job_.fail(late);
    if (waited < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

/// The watchdog's thread. It returns when the connection leaves and no operation is under way.
void Connection::watch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return leaves_ || !under_way_.empty(); });
    if (under_way_.empty()) return;
    lock.unlock();
    try {
      guarded([&] { look(); });
    } catch (const PeerError&) {  // those who wait throw it, and `confirm`
    }
    std::this_thread::sleep_for(kLook);
    lock.lock();
  }
}

/// Ends the operations that the device has done. Throws what is wrong with the others.
void Connection::look() {
  cuda::enter(device_);  // otherwise the thread's first call would open another device
  Clock::time_point progress;
  {
    const std::lock_guard lock(mutex_);
    for (; !under_way_.empty() && under_way_.front()->passed(); under_way_.pop_front()) {
      under_way_.front()->end();
      recorder_.end(under_way_.front()->message().sequence, OperationRecord::State::done);
      progress_ = Clock::now();
    }
    if (under_way_.empty()) return;
    settled(communicator_, to_string(under_way_.front()->message()));
    progress = progress_;
  }
  job_.throw_if_failed();
  if (Clock::now() - progress >= patience_) job_.fail("");
}

/// Ends NCCL on a separate thread, and the operations under way with it. That thread keeps the memory of these
/// operations, and of the one that starts, until NCCL returns, because the device may still use it.
void Connection::end(bool abort, const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (!communicator_) return;
  failure_ = failure;
  std::vector<Tensor> tensors = std::exchange(starting_, {});
  auto works = std::exchange(under_way_, {});
  for (const auto& work : works) {
    std::ranges::move(work->end(failure), std::back_inserter(tensors));
    recorder_.end(work->message().sequence, OperationRecord::State::failed);
  }
  std::packaged_task<void()> task([communicator = communicator_, device = device_, abort, works = std::move(works),
                                   tensors = std::move(tensors)]() mutable {
    cuda::enter(device);
    if (abort)
      library().comm_abort(communicator);
    else
      leave(communicator);
    works.clear();
    tensors.clear();
  });
  communicator_ = nullptr;
  ended_ = task.get_future().share();
  std::thread(std::move(task)).detach();
}

/// Waits until NCCL has ended, for kEndLimit at most.
void Connection::await_end() {
  std::unique_lock lock(mutex_);
  const auto ended = ended_;
  lock.unlock();
  if (ended.valid()) ended.wait_for(kEndLimit);
}

/// Whether NCCL has no error. It answers every call after an error with that error.
bool Connection::works() {
  return use([](ncclComm_t communicator) {
    ncclResult_t state = ncclSuccess;
    return library().comm_get_async_error(communicator, &state) == ncclSuccess &&
           (state == ncclSuccess || state == ncclInProgress);
  });
}

}  // namespace tern::nccl
