#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/tensor.h"
#include "tern/dist/comm/transport.h"

namespace tern::nccl {

/// An operation that the device does while the CPU goes on. Shared by those who wait for it. Thread-safe.
class WorkUnderWay {
 public:
  explicit WorkUnderWay(const Message& message) : message_(message) {}
  virtual ~WorkUnderWay() = default;
  WorkUnderWay(const WorkUnderWay&) = delete;
  WorkUnderWay& operator=(const WorkUnderWay&) = delete;

  const Message& message() const { return message_; }
  /// Whether the device has done the operation.
  virtual bool passed() const = 0;
  /// It is done, or else it has failed for this reason. Returns the tensors that it may still use.
  virtual std::vector<Tensor> end(const std::string& failure = "") = 0;

 private:
  Message message_;
};

/// An operation on CUDA tensors, from its call until the device has done it. The queue's task, the Connection and those
/// who wait for it share it. Thread-safe.
class DeviceWork final : public WorkUnderWay {
 public:
  /// The operation comes after the kernels that have been issued so far.
  DeviceWork(const Message& message, Device device);

  /// Makes work that is put into `stream` from now on wait for those kernels.
  void follow(cudaStream_t stream) const { issued_.hold(stream); }
  /// The operation is in `stream`, and uses `tensors`. The other functions below may be called from now on.
  void enqueued(cudaStream_t stream, std::vector<Tensor> tensors);
  /// Makes kernels that are issued from now on wait for the operation. Throws PeerError if it has failed.
  void join();
  bool passed() const override { return ended_.passed(); }
  std::vector<Tensor> end(const std::string& failure = "") override;

 private:
  Device device_;
  cuda::Event issued_, ended_;
  std::mutex mutex_;             ///< guards what follows
  std::vector<Tensor> tensors_;  ///< kept so that no other work gets their memory
  std::string failure_;
};

/// A word of CPU memory in which a recorded operation leaves the step of each replay, once the device has done it.
/// Shared by the recording and its replays. Thread-safe.
class StepWord {
 public:
  explicit StepWord(Device device);

  /// Puts the write into `stream`, behind the operation. This thread must be recording.
  void record(cudaStream_t stream) const;
  /// The last step that was written; -1: none.
  int64_t step() const { return *static_cast<const volatile int64_t*>(memory_.get()); }

 private:
  std::shared_ptr<void> memory_;
};

/// An operation in a replay of a recording, which keeps the tensors. Thread-safe.
class ReplayedWork final : public WorkUnderWay {
 public:
  ReplayedWork(const Message& message, std::shared_ptr<const StepWord> done, uint32_t step)
      : WorkUnderWay(message), done_(std::move(done)), step_(step) {}

  bool passed() const override { return done_->step() >= step_; }
  std::vector<Tensor> end(const std::string&) override { return {}; }

 private:
  std::shared_ptr<const StepWord> done_;
  int64_t step_;
};

}  // namespace tern::nccl
