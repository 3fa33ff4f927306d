#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tern::trainer {

/// When a rank last got ahead, in memory that its supervisor sees too. A default one is nobody's and notes nothing.
class Pulse {
 public:
  Pulse() = default;
  explicit Pulse(std::atomic<int64_t>& cell) : cell_(&cell) {}

  /// The rank has just done a part of its work.
  void beat() const;
  /// Now, while the rank is in the middle of Work; otherwise the last beat, or the clock's epoch if there was none.
  std::chrono::steady_clock::time_point last() const;

  /// While one lives, the rank is at work that is one piece and may take long, such as writing a checkpoint.
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

  std::atomic<int64_t>* cell_ = nullptr;  ///< ticks of the steady clock, which all processes of a machine share
};

/// The pulses of a job's ranks: memory that the supervisor makes and its ranks inherit.
class PulseMemory {
 public:
  PulseMemory();
  /// A rank's: `descriptor` is the supervisor's, inherited; it is owned now.
  explicit PulseMemory(int descriptor);
  ~PulseMemory();
  PulseMemory(const PulseMemory&) = delete;
  PulseMemory& operator=(const PulseMemory&) = delete;

  /// For ranks to inherit.
  int descriptor() const { return descriptor_; }
  Pulse of(int rank) const { return Pulse(cells_[rank]); }

 private:
  int descriptor_;
  std::atomic<int64_t>* cells_;
};

}  // namespace tern::trainer
