#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tern/dist/comm/collectives.h"

// NCCL between threads of one process. Calls return at once, and enter their stream while the caller asks for errors.
// A stream goes on when all ranks of its operation have called it, and its data have moved. If ranks never call, or
// call different operations, it goes on when its rank aborts. Calls that are captured join a graph at once. A launch of
// the graph returns when all ranks of its operations have called them. All ranks must capture an operation, or none. An
// abort returns when there are no graphs with calls of its rank any more, as in NCCL.

std::atomic<bool> emulation::nccl_refuses_captures = false;
std::atomic<size_t> emulation::nccl_stays_busy_with = 0;

namespace {

enum class Kind { broadcast, all_reduce, reduce, reduce_scatter, all_gather };

/// One collective call of one rank.
struct Call {
  Kind kind;
  const void* send;
  void* receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction = ncclSum;
  int root = 0;
};

/// One end of a message.
struct End {
  int peer;
  void* memory;
  size_t bytes;
};

/// What a rank calls at once: one call, or those of a group.
struct Group {
  std::deque<Call> calls = {};
  std::vector<End> sends = {}, receives = {};
  cudaStream_t stream = nullptr;
  bool captured = false;
  std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);

  bool done() const { return calls.empty() && sends.empty() && receives.empty(); }
};

/// The state that the ranks with one id share. `all` guards it.
struct Job {
  explicit Job(int ranks) : members(ranks) {}

  int size() const { return static_cast<int>(members.size()); }
  bool complete() const {
    return std::ranges::all_of(members, [](ncclComm_t member) { return member != nullptr; });
  }

  std::vector<ncclComm_t> members;
};

std::mutex all;
std::map<std::string, std::shared_ptr<Job>> jobs;

}  // namespace

struct ncclComm {
  std::shared_ptr<Job> job;
  int rank;
  bool joined = false;
  std::deque<Group> called = {}, streamed = {};  // before and after they enter their stream
  ncclResult_t error = ncclSuccess;
  std::shared_ptr<char> graphs = std::make_shared<char>();  // each captured group has a copy
};

namespace {

tern::DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8: return tern::DType::u8;
    case ncclInt64: return tern::DType::i64;
    case ncclFloat64: return tern::DType::f64;
    case ncclBfloat16: return tern::DType::bf16;
    default: return tern::DType::f32;
  }
}

/// The call that the rank's stream has reached.
const Call& front_of(ncclComm_t member) { return member->streamed.front().calls.front(); }

size_t bytes_of(const Call& call) { return call.count * tern::size_of(dtype_of(call.type)); }

/// The reduction of the data of all ranks.
std::vector<std::byte> reduced(const Job& job, size_t bytes) {
  const Call& first = front_of(job.members[0]);
  std::vector<std::byte> result(bytes);
  std::memcpy(result.data(), first.send, bytes);
  for (int rank = 1; rank < job.size(); ++rank)
    tern::detail::reduce(first.reduction == ncclSum ? tern::Reduction::sum : tern::Reduction::max, dtype_of(first.type),
                         result, {static_cast<const std::byte*>(front_of(job.members[rank]).send), bytes});
  return result;
}

void perform(const Job& job) {
  const emulation::DeviceAccess access;
  const Call first = front_of(job.members[0]);
  const size_t bytes = bytes_of(first), ranks = job.members.size();
  std::vector<std::byte> result;
  switch (first.kind) {
    case Kind::broadcast: {
      const auto* source = static_cast<const std::byte*>(front_of(job.members[first.root]).send);
      result.assign(source, source + bytes);
      break;
    }
    case Kind::all_gather:
      for (const ncclComm_t member : job.members) {
        const auto* part = static_cast<const std::byte*>(front_of(member).send);
        result.insert(result.end(), part, part + bytes);
      }
      break;
    case Kind::reduce_scatter: result = reduced(job, bytes * ranks); break;
    default: result = reduced(job, bytes); break;
  }
  for (const ncclComm_t member : job.members) {
    const Call& call = front_of(member);
    if (call.kind == Kind::reduce && member->rank != call.root) continue;
    const bool part = call.kind == Kind::reduce_scatter;
    std::memcpy(call.receive, result.data() + (part ? member->rank * bytes : 0), part ? bytes : result.size());
  }
}

bool alike(const Call& a, const Call& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.reduction == b.reduction && a.root == b.root;
}

/// The first call of each rank's stream, if it is the same on all. Returns whether any data moved.
bool move_collectively(Job& job) {
  const auto calls = [](ncclComm_t member) {
    return !member->streamed.empty() && !member->streamed.front().calls.empty();
  };
  if (!std::ranges::all_of(job.members, calls)) return false;
  const Call first = front_of(job.members[0]);
  const bool captured = job.members[0]->streamed.front().captured;
  const bool same = std::ranges::all_of(job.members, [&](ncclComm_t member) {
    return alike(front_of(member), first) && member->streamed.front().captured == captured;
  });
  if (same) perform(job);
  for (const ncclComm_t member : job.members) {
    if (same)
      member->streamed.front().calls.pop_front();
    else
      member->error = ncclInvalidUsage;
  }
  return same;
}

/// One message of which both ends are at the front of their streams. Returns whether any data moved.
bool move_message(Job& job) {
  for (const ncclComm_t from : job.members) {
    if (from->streamed.empty()) continue;
    auto& sends = from->streamed.front().sends;
    for (auto send = sends.begin(); send != sends.end(); ++send) {
      const ncclComm_t to = job.members[send->peer];
      if (to->streamed.empty()) continue;
      auto& receives = to->streamed.front().receives;
      const auto receive = std::ranges::find(receives, from->rank, &End::peer);
      if (receive == receives.end()) continue;
      if (send->bytes != receive->bytes || from->streamed.front().captured != to->streamed.front().captured) {
        from->error = to->error = ncclInvalidUsage;
        return false;
      }
      const emulation::DeviceAccess access;
      std::memcpy(receive->memory, send->memory, send->bytes);
      sends.erase(send);
      receives.erase(receive);
      return true;
    }
  }
  return false;
}

/// Does what all ranks concerned have called by now.
void advance(Job& job) {
  if (!job.complete()) return;
  for (const ncclComm_t member : job.members) member->joined = true;
  while (move_collectively(job) || move_message(job))
    for (const ncclComm_t member : job.members)
      for (; !member->streamed.empty() && member->streamed.front().done(); member->streamed.pop_front())
        *member->streamed.front().ended = true;
}

/// The group that this thread has opened.
struct Opened {
  int depth = 0;
  ncclComm_t comm = nullptr;
  Group group = {};
};
thread_local Opened opened;

/// Does what the group of a rank calls, and returns when it has ended.
void run(const std::shared_ptr<Job>& job, int rank, Group group) {
  group.ended = std::make_shared<std::atomic<bool>>(false);
  const auto ended = group.ended;
  {
    const std::lock_guard lock(all);
    if (job->members[rank] == nullptr) return;  // it has aborted
    job->members[rank]->streamed.push_back(std::move(group));
  }
  while (!*ended) {
    {
      const std::lock_guard lock(all);
      advance(*job);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

ncclResult_t close() {
  if (opened.depth > 0 || opened.comm == nullptr) return ncclInProgress;
  const ncclComm_t comm = std::exchange(opened.comm, nullptr);
  Group group = std::exchange(opened.group, {});
  if (emulation::captures() && !group.done()) {
    if (emulation::nccl_refuses_captures) return comm->error = ncclInvalidUsage;
    group.captured = true;
    emulation::issue(group.stream,
                     [job = comm->job, rank = comm->rank, group, graphs = comm->graphs] { run(job, rank, group); });
    return ncclInProgress;
  }
  const std::lock_guard lock(all);
  comm->called.push_back(std::move(group));
  return ncclInProgress;
}

/// The group to which a call belongs.
Group& group_of(ncclComm_t comm, cudaStream_t stream) {
  opened.comm = comm;
  opened.group.stream = stream;
  return opened.group;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const Call& call) {
  group_of(comm, stream).calls.push_back(call);
  return close();
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "emulated error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int last = 0;
  const std::lock_guard lock(all);
  std::snprintf(id->internal, sizeof id->internal, "job %d", ++last);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  const std::lock_guard lock(all);
  auto& job = jobs[id.internal];
  if (!job) job = std::make_shared<Job>(ranks);
  *comm = new ncclComm{job, rank};
  job->members[rank] = *comm;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(all);
  bool settled = comm->joined && comm->called.empty();
  for (; !comm->called.empty(); comm->called.pop_front()) {
    Group& group = comm->called.front();
    if (group.done()) continue;
    emulation::add(*group.stream, group.ended);
    comm->streamed.push_back(std::move(group));
  }
  advance(*comm->job);
  for (const Group& group : comm->streamed)
    for (const Call& call : group.calls) settled = settled && call.count != emulation::nccl_stays_busy_with;
  *state = comm->error != ncclSuccess ? comm->error : settled ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(all);
    comm->job->members[comm->rank] = nullptr;
    for (const Group& group : comm->streamed) *group.ended = true;
  }
  while (comm->graphs.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++opened.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --opened.depth;
  return close();
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::broadcast, send, receive, count, type, ncclSum, root});
}
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::all_reduce, send, receive, count, type, reduction});
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::reduce, send, receive, count, type, reduction, root});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::reduce_scatter, send, receive, count, type, reduction});
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(comm, stream, {Kind::all_gather, send, receive, count, type});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  group_of(comm, stream).sends.push_back({peer, const_cast<void*>(send), count * tern::size_of(dtype_of(type))});
  return close();
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  group_of(comm, stream).receives.push_back({peer, receive, count * tern::size_of(dtype_of(type))});
  return close();
}
