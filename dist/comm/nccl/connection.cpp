#include "tern/dist/comm/nccl/connection.h"

#include <exception>
#include <future>
#include <thread>

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

/// A wait spins first, because the operation may be quicker than the wake-up of a sleeping thread.
constexpr auto kSpin = std::chrono::microseconds(100), kNap = std::chrono::microseconds(20);

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

bool Stream::idle(const char* operation) const {
  const cudaError_t state = cudaStreamQuery(stream_);
  if (state == cudaErrorNotReady) return false;
  cuda::check_cuda(state, operation);
  return true;
}

Connection::Connection(Transport& job, Device device, const ncclUniqueId& id, const Deadlines& deadlines)
    : job_(job),
      device_(device),
      patience_(deadlines.operation),
      exceptions_(std::uncaught_exceptions()),
      stream_(device) {
  guarded([&] {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check_nccl(library().comm_init_rank_config(&communicator_, job_.size(), id, job_.rank(), &config), "connect");
    const std::string late = "was not connected by NCCL within " + detail::seconds(deadlines.rendezvous);
    wait(deadlines.rendezvous, late, [&] { return settled(communicator_, "connect"); });
  });
}

Connection::~Connection() { end(std::uncaught_exceptions() > exceptions_ || job_failed()); }

bool Connection::job_failed() const {
  try {
    job_.throw_if_failed();
    return false;
  } catch (const PeerError&) {
    return true;
  }
}

void Connection::run(const Message& message, const cuda::Event& issued, const Enqueue& enqueue) {
  const std::string operation = to_string(message);
  guarded([&] {
    job_.reach(message);
    job_.throw_if_failed();
    cuda::enter(device_);
    issued.hold(stream_.get());
    enqueue(communicator_, stream_.get());
    // A call that NCCL still works on is not in the stream yet. `settled` reports its errors.
    wait(patience_, "", [&] { return settled(communicator_, operation) && stream_.idle(operation.c_str()); });
  });
}

/// An error ends the job and this connection before the caller frees the tensors, because NCCL's kernels may still use
/// them.
template <class Step>
void Connection::guarded(const Step& step) {
  try {
    try {
      step();
    } catch (const PeerError&) {
      throw;
    } catch (const Error& error) {
      job_.fail(error.what());
    }
  } catch (...) {
    end(true);
    throw;
  }
}

/// `late` is the cause if the time limit passes, as in Transport::fail.
template <class Done>
void Connection::wait(Clock::duration limit, const std::string& late, const Done& done) const {
  const auto begin = Clock::now();
  while (!done()) {
    job_.throw_if_failed();
    const auto waited = Clock::now() - begin;
    if (waited >= limit) job_.fail(late);
    if (waited < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

/// Ends NCCL on a separate thread. If NCCL does not return, that thread stays behind.
void Connection::end(bool abort) {
  if (!communicator_) return;
  std::packaged_task<void()> task([communicator = communicator_, device = device_, abort] {
    cuda::enter(device);
    if (abort)
      library().comm_abort(communicator);
    else
      leave(communicator);
  });
  communicator_ = nullptr;
  const auto ended = task.get_future();
  std::thread(std::move(task)).detach();
  ended.wait_for(kEndLimit);
}

}  // namespace tern::nccl
