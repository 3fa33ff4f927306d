#pragma once

#include "tern/dist/message.h"

namespace tern {

/// Seconds of one rank's training that were not its own computation.
struct ExchangeTimes {
  double encode = 0, wait = 0, decode = 0;

  friend ExchangeTimes operator+(const ExchangeTimes& a, const ExchangeTimes& b) {
    return {a.encode + b.encode, a.wait + b.wait, a.decode + b.decode};
  }
};

/// Adds the seconds of its life to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace tern
