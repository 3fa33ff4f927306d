#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tern::trainer {

/// The time of a rank's last progress, in memory shared with its supervisor. A default one has no memory and records
/// nothing.
class Pulse {
 public:
  Pulse() = default;
  explicit Pulse(std::atomic<int64_t>& cell) : cell_(&cell) {}

  /// Records that the rank has just finished a part of its work.
  void beat() const;
  /// The current time while a Work object exists; otherwise the last beat, or the clock's epoch if there was none.
  std::chrono::steady_clock::time_point last() const;

  /// While this object exists, the rank does one long piece of work, such as writing a checkpoint.
  class Work {
   public:
    explicit Work(const Pulse& pulse);
    ~Work() { pulse_.beat(); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    const Pulse& pulse_;
  };

 private:
  void store(std::chrono::steady_clock::time_point time) const;

  std::atomic<int64_t>* cell_ = nullptr;  ///< ticks of the steady clock, which is common to all processes of a machine
};

/// The pulses of the ranks of a job: memory that the supervisor creates and its ranks inherit.
class PulseMemory {
 public:
  PulseMemory();
  /// In a rank: takes over the `descriptor` inherited from the supervisor.
  explicit PulseMemory(int descriptor);
  ~PulseMemory();
  PulseMemory(const PulseMemory&) = delete;
  PulseMemory& operator=(const PulseMemory&) = delete;

  /// The descriptor that the ranks inherit.
  int descriptor() const { return descriptor_; }
  Pulse of(int rank) const { return Pulse(cells_[rank]); }

 private:
  int descriptor_;
  std::atomic<int64_t>* cells_;
};

}  // namespace tern::trainer
