#pragma once

#include <csignal>

#include "tern/core/error.h"

namespace tern {

/// A person stopped the run; applications end with code 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// While one lives, the first Ctrl-C (SIGINT) or SIGTERM is only noted, so that the step can end; the second ends the
/// process at once. One per process at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct sigaction previous_interrupt_, previous_terminate_;
};

}  // namespace tern
