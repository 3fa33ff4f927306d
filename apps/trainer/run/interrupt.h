#pragma once

#include <array>
#include <csignal>

#include "tern/core/error.h"

namespace tern::trainer {

/// A person stopped the run; applications end with code 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// By these a person ends a run.
inline constexpr std::array kInterrupts = {SIGINT, SIGTERM, SIGHUP};

/// Whether this process was started under nohup, or as if it were: SIGHUP stays ignored then.
bool ignores_hangup();

/// While one lives, the first Ctrl-C (SIGINT), SIGTERM or SIGHUP is only noted, so that the step can end; a second
/// SIGINT or SIGTERM ends the process at once. One per process at a time, made before the threads that compute: neither
/// they nor the thread that makes it run the handler, since its frame could overwrite the heap: matrix products of
/// oneDNN keep another pointer in the stack pointer's register (uxlfoundation/oneDNN, issue 4845, mended there in
/// 2026).
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Since the last one was made; false before the first.
  static bool interrupted();

 private:
  std::array<struct sigaction, kInterrupts.size()> previous_;
  sigset_t previous_mask_;
};

}  // namespace tern::trainer
