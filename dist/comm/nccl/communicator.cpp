#include "tern/dist/comm/nccl/communicator.h"

#include "tern/core/cuda/recorded_step.h"
#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"

namespace tern::nccl {
namespace {

using detail::Range;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::bf16: return ncclBfloat16;
    case DType::i64: return ncclInt64;
    case DType::u8: return ncclUint8;
  }
  fail({"nccl: found dtype ", dtype, ", expected f32, f64, bf16, i64 or u8"});
}

/// Makes the NCCL calls of one operation, with the arguments that they share.
class Calls {
 public:
  Calls(const CollectiveCall& call, int rank, int size, ncclComm_t communicator, cudaStream_t stream)
      : call_(call), rank_(rank), size_(size), communicator_(communicator), stream_(stream) {}

  void broadcast() const { check(nccl_.broadcast(x(), x(), count(), type_, call_.root, communicator_, stream_)); }
  void all_reduce(ncclRedOp_t reduction) const {
    check(nccl_.all_reduce(x(), x(), count(), type_, reduction, communicator_, stream_));
  }
  void reduce_scatter() const;
  void all_gather() const { check(nccl_.all_gather(x(), y(), count(), type_, communicator_, stream_)); }
  void transfer() const;

 private:
  void check(ncclResult_t result) const { check_nccl(result, to_string(call_.message), communicator_); }
  template <class Body>
  void grouped(const Body& body) const {
    check(nccl_.group_start());
    try {
      body();
    } catch (...) {
      nccl_.group_end();  // otherwise this thread's later calls would join the group
      throw;
    }
    check(nccl_.group_end());
  }
  std::byte* x(int64_t element = 0) const { return at(call_.x, element); }
  std::byte* y(int64_t element = 0) const { return at(call_.y, element); }
  std::byte* result(int64_t element) const { return call_.in_place() ? x(element) : y(element); }
  std::byte* at(const Tensor& tensor, int64_t element) const {
    return tensor.defined() ? static_cast<std::byte*>(tensor.raw_data()) + element * width_ : nullptr;
  }
  size_t count() const { return static_cast<size_t>(call_.x.numel()); }

  const Library& nccl_ = library();
  const CollectiveCall& call_;
  int rank_, size_;
  ncclComm_t communicator_;
  cudaStream_t stream_;
  ncclDataType_t type_ = type_of(call_.message.dtype);
  int64_t width_ = static_cast<int64_t>(size_of(call_.message.dtype));
};

/// NCCL's own call only takes parts of equal size.
void Calls::reduce_scatter() const {
  const size_t part = static_cast<size_t>(call_.y.numel());
  if (count() % static_cast<size_t>(size_) == 0)
    return check(nccl_.reduce_scatter(x(), y(), part, type_, ncclSum, communicator_, stream_));
  grouped([&] {
    for (int rank = 0; rank < size_; ++rank) {
      const Range range = {call_.sends[rank], call_.sends[rank + 1]};
      if (range.count() == 0) continue;
      check(nccl_.reduce(x(range.begin), y(), range.count(), type_, ncclSum, rank, communicator_, stream_));
    }
  });
}

void Calls::transfer() const {
  const detail::Transfers parts = detail::direct_transfers(call_, rank_, size_);
  grouped([&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const Range send = parts.sends[peer], receive = parts.receives[peer];
      if (send.count() > 0) check(nccl_.send(x(send.begin), send.count(), type_, peer, communicator_, stream_));
      if (receive.count() > 0)
        check(nccl_.receive(result(receive.begin), receive.count(), type_, peer, communicator_, stream_));
    }
  });
  const Range own = parts.sends[rank_];
  std::byte* target = result(parts.receives[rank_].begin);
  if (own.count() > 0 && target != x(own.begin))
    cuda::check_cuda(cudaMemcpyAsync(target, x(own.begin), own.count() * width_, cudaMemcpyDeviceToDevice, stream_),
                     "nccl");
}

}  // namespace

bool goes_directly(const CollectiveCall& call) {
  switch (call.message.operation) {
    case Operation::broadcast:
    case Operation::all_reduce_sum:
    case Operation::all_reduce_max:
    case Operation::reduce_scatter: return false;
    case Operation::all_gather: {
      const int64_t whole = call.sends.back(), ranks = std::ssize(call.sends) - 1;
      return whole % ranks != 0 || call.sends != detail::even_cuts(whole, static_cast<int>(ranks));
    }
    default: return true;
  }
}

void enqueue(const CollectiveCall& call, int rank, int size, ncclComm_t communicator, cudaStream_t stream) {
  const Calls calls(call, rank, size, communicator, stream);
  if (goes_directly(call)) return calls.transfer();
  switch (call.message.operation) {
    case Operation::broadcast: return calls.broadcast();
    case Operation::all_reduce_sum: return calls.all_reduce(ncclSum);
    case Operation::all_reduce_max: return calls.all_reduce(ncclMax);
    case Operation::reduce_scatter: return calls.reduce_scatter();
    default: return calls.all_gather();
  }
}

}  // namespace tern::nccl

namespace tern::nccl {

Work NcclCommunicator::start(const CollectiveCall& call) {
  check(call.device() == device_ || !cuda::records(), call.message.operation, ": tensors on ", call.device(),
        " in work that is being recorded, expected ", device_);
  if (call.device() == Device{}) return host_->start(call);
  check(call.device() == device_, call.message.operation, ": tensors are on ", call.device(), ", expected ", device_,
        " or cpu");
  if (cuda::records()) return record(call);
  CollectiveCall numbered = call;
  numbered.message.sequence = host_->next_number();
  host_->recorder().queue(numbered.recorded());
  const auto work = std::make_shared<DeviceWork>(numbered.message, device_);
  return queue_.add(
      [this, call = numbered, agreed = agree(numbered), work] {
        host_->recorder().start(call.message.sequence, [&] {
          agreed();
          connection_.start(work, {call.x, call.y}, [&](ncclComm_t communicator, cudaStream_t stream) {
            enqueue(call, rank(), size(), communicator, stream);
          });
          detail::count(call.message, moved_by(call), ledger_);
        });
      },
      [work] { work->join(); });
}

/// Makes the operation a part of the recording. The calling thread does it: a queue's thread records nothing.
Work NcclCommunicator::record(const CollectiveCall& call) {
  const Message& message = call.message;
  check(agreed_.contains(Kind(message.operation, message.dtype, message.count, call.root)), message.operation, " of ",
        message.count, " ", message.dtype,
        ": the ranks have not compared such an operation yet, so it is not recorded");
  queue_.add([] {}).wait();  // until what was called before is in NCCL's stream
  const auto work = std::make_shared<DeviceWork>(message, device_);
  const auto done = std::make_shared<StepWord>(device_);
  connection_.record(*work, {call.x, call.y}, *done, [&](ncclComm_t communicator, cudaStream_t stream) {
    enqueue(call, rank(), size(), communicator, stream);
  });
  cuda::before_replays([this, label = call.recorded(), moved = moved_by(call), done](uint32_t step) {
    queue_.add([] {}).wait();  // what was called before comes first, on all ranks
    Message numbered = label;
    numbered.sequence = host_->next_number();
    host_->recorder().queue(numbered);
    host_->recorder().start(numbered.sequence, [&] {
      connection_.replay(std::make_shared<ReplayedWork>(numbered, done, step));
      detail::count(numbered, moved, ledger_);
    });
  });
  return queue_.add([] {}, [work] { work->join(); });
}

/// Starts to compare the first operation of each kind with the other ranks' operation. If they differ, NCCL hangs or
/// gives wrong sums. The returned function waits for the comparison.
std::function<void()> NcclCommunicator::agree(const CollectiveCall& call) {
  const Message& message = call.message;
  if (!agreed_.emplace(message.operation, message.dtype, message.count, call.root).second) return [] {};
  return [same = host_->agree(message), parts = parts_may_differ(message.operation) ? agree_on_parts(call) : [] {}] {
    same.wait();
    parts();
  };
}

/// Starts to compare the lengths of the parts, because a message does not hold them.
std::function<void()> NcclCommunicator::agree_on_parts(const CollectiveCall& call) {
  std::vector<int64_t> sent, expected;
  const detail::Transfers parts = detail::direct_transfers(call, rank(), size());
  for (int peer = 0; peer < size(); ++peer) {
    sent.push_back(parts.sends[peer].count());
    expected.push_back(parts.receives[peer].count());
  }
  const Tensor mine = Tensor::from<int64_t>({size()}, sent);
  Tensor theirs = Tensor::empty_like(mine);
  const Work told = host_->all_to_all(mine, theirs, Account::overhead);
  return [this, told, theirs, expected, message = call.message] {
    told.wait();
    const auto found = theirs.span<int64_t>();
    for (int peer = 0; peer < size(); ++peer)
      if (found[peer] != expected[peer])
        host_->transport().fail(join({"expects ", expected[peer], " elements from rank ", peer, ", which sends ",
                                      found[peer], " in ", message}));
  };
}

detail::Volume NcclCommunicator::moved_by(const CollectiveCall& call) const {
  return goes_directly(call) ? detail::moved_directly(call, rank(), size())
                             : detail::moved_collectively(call, rank(), size());
}

}  // namespace tern::nccl
