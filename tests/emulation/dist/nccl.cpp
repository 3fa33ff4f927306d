#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tern/dist/comm/collectives.h"

// NCCL between threads of one process. No data moves before all ranks of an operation have called it. Calls return at
// once. If its peers never call, a rank waits for ever, as in NCCL.

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
  void* memory;
  size_t bytes;
};

/// The state that the ranks with one id share. `all` guards it.
struct Job {
  explicit Job(int ranks) : members(ranks), sends(ranks * ranks), receives(ranks * ranks) {}

  int size() const { return static_cast<int>(members.size()); }
  bool complete() const {
    return std::ranges::all_of(members, [](ncclComm_t member) { return member != nullptr; });
  }

  std::vector<ncclComm_t> members;
  std::vector<std::deque<End>> sends, receives;  // index: from * size + to
};

std::mutex all;
std::map<std::string, std::shared_ptr<Job>> jobs;

}  // namespace

struct ncclComm {
  std::shared_ptr<Job> job;
  int rank;
  bool joined = false;
  std::deque<Call> calls = {};
  int messages = 0;  // ends of this rank whose other end is missing
  ncclResult_t error = ncclSuccess;
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

size_t bytes_of(const Call& call) { return call.count * tern::size_of(dtype_of(call.type)); }

/// The reduction of the data of all ranks.
std::vector<std::byte> reduced(const Job& job, size_t bytes) {
  const Call& first = job.members[0]->calls.front();
  std::vector<std::byte> result(bytes);
  std::memcpy(result.data(), first.send, bytes);
  for (int rank = 1; rank < job.size(); ++rank)
    tern::detail::reduce(first.reduction == ncclSum ? tern::Reduction::sum : tern::Reduction::max, dtype_of(first.type),
                         result, {static_cast<const std::byte*>(job.members[rank]->calls.front().send), bytes});
  return result;
}

void perform(const Job& job) {
  const emulation::DeviceAccess access;
  const Call first = job.members[0]->calls.front();
  const size_t bytes = bytes_of(first), ranks = job.members.size();
  std::vector<std::byte> result;
  switch (first.kind) {
    case Kind::broadcast: {
      const auto* source = static_cast<const std::byte*>(job.members[first.root]->calls.front().send);
      result.assign(source, source + bytes);
      break;
    }
    case Kind::all_gather:
      for (const ncclComm_t member : job.members) {
        const auto* part = static_cast<const std::byte*>(member->calls.front().send);
        result.insert(result.end(), part, part + bytes);
      }
      break;
    case Kind::reduce_scatter: result = reduced(job, bytes * ranks); break;
    default: result = reduced(job, bytes); break;
  }
  for (const ncclComm_t member : job.members) {
    const Call& call = member->calls.front();
    if (call.kind == Kind::reduce && member->rank != call.root) continue;
    const bool part = call.kind == Kind::reduce_scatter;
    std::memcpy(call.receive, result.data() + (part ? member->rank * bytes : 0), part ? bytes : result.size());
  }
}

bool alike(const Call& a, const Call& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.reduction == b.reduction && a.root == b.root;
}

/// Does the operations that all their ranks have called by now.
void advance(Job& job) {
  if (!job.complete()) return;
  for (const ncclComm_t member : job.members) member->joined = true;
  const auto called = [](ncclComm_t member) { return !member->calls.empty(); };
  while (std::ranges::all_of(job.members, called)) {
    const Call& first = job.members[0]->calls.front();
    const bool same =
        std::ranges::all_of(job.members, [&](ncclComm_t member) { return alike(member->calls.front(), first); });
    if (same) perform(job);
    for (const ncclComm_t member : job.members) {
      if (!same) member->error = ncclInvalidUsage;
      member->calls.pop_front();
    }
  }
  for (size_t pair = 0; pair < job.sends.size(); ++pair) {
    auto &sends = job.sends[pair], &receives = job.receives[pair];
    for (; !sends.empty() && !receives.empty(); sends.pop_front(), receives.pop_front()) {
      const ncclComm_t from = job.members[pair / job.members.size()], to = job.members[pair % job.members.size()];
      --from->messages;
      --to->messages;
      const emulation::DeviceAccess access;
      if (sends.front().bytes == receives.front().bytes)
        std::memcpy(receives.front().memory, sends.front().memory, sends.front().bytes);
      else
        from->error = to->error = ncclInvalidUsage;
    }
  }
}

ncclResult_t add(ncclComm_t comm, const Call& call) {
  const std::lock_guard lock(all);
  comm->calls.push_back(call);
  return ncclInProgress;
}

ncclResult_t add(ncclComm_t comm, std::vector<std::deque<End>>& ends, int from, int to, void* memory, size_t bytes) {
  const std::lock_guard lock(all);
  ends[from * comm->job->size() + to].push_back({memory, bytes});
  ++comm->messages;
  return ncclInProgress;
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
  advance(*comm->job);
  const bool done = comm->joined && comm->calls.empty() && comm->messages == 0;
  *state = comm->error != ncclSuccess ? comm->error : done ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(all);
  Job& job = *comm->job;
  job.members[comm->rank] = nullptr;
  for (int peer = 0; peer < job.size(); ++peer) {
    job.sends[comm->rank * job.size() + peer].clear();
    job.receives[peer * job.size() + comm->rank].clear();
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclInProgress; }

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  return add(comm, {Kind::broadcast, send, receive, count, type, ncclSum, root});
}
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t) {
  return add(comm, {Kind::all_reduce, send, receive, count, type, reduction});
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t comm, cudaStream_t) {
  return add(comm, {Kind::reduce, send, receive, count, type, reduction, root});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t) {
  return add(comm, {Kind::reduce_scatter, send, receive, count, type, reduction});
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  return add(comm, {Kind::all_gather, send, receive, count, type});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return add(comm, comm->job->sends, comm->rank, peer, const_cast<void*>(send), count * tern::size_of(dtype_of(type)));
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return add(comm, comm->job->receives, peer, comm->rank, receive, count * tern::size_of(dtype_of(type)));
}
