#pragma once

#include <array>
#include <csignal>
#include <cstdint>

#include "tern/core/error.h"

namespace tern::trainer {

/// Thrown if a user stops the run. Applications then end with exit code 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// The signals with which a user ends a run.
inline constexpr std::array kInterrupts = {SIGINT, SIGTERM, SIGHUP};

/// Whether SIGHUP is ignored, as under nohup. Then it stays ignored.
bool ignores_hangup();

/// While this object exists, the first Ctrl-C (SIGINT), SIGTERM or SIGHUP is only recorded, so that the step can
/// finish. A second SIGINT or SIGTERM ends the process at once. Only one object may exist per process; create it before
/// the compute threads. A separate thread runs the signal handler; the compute threads and the creating thread block
/// the signals. Reason: oneDNN's matrix products keep another pointer in the stack pointer's register, so a handler's
/// stack frame could overwrite the heap (uxlfoundation/oneDNN, issue 4845, fixed there in 2026).
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal has come since the last guard was made; false before the first one.
  static bool interrupted();
  /// How often SIGUSR1 has come while a guard existed: a user wants the flight records of a job.
  static int64_t records_wanted();

 private:
  std::array<struct sigaction, kInterrupts.size()> previous_;
  struct sigaction previous_wish_;
  sigset_t previous_mask_;
};

}  // namespace tern::trainer
