#pragma once

#include "tern/core/stopwatch.h"

namespace tern {

/// Seconds of one rank's training that were not its own computation.
struct ExchangeTimes {
  double encode = 0, wait = 0, decode = 0;

  double total() const { return encode + wait + decode; }

  friend ExchangeTimes operator+(const ExchangeTimes& a, const ExchangeTimes& b) {
    return {a.encode + b.encode, a.wait + b.wait, a.decode + b.decode};
  }
  friend ExchangeTimes operator-(const ExchangeTimes& a, const ExchangeTimes& b) {
    return {a.encode - b.encode, a.wait - b.wait, a.decode - b.decode};
  }
  friend ExchangeTimes operator/(const ExchangeTimes& a, double n) { return {a.encode / n, a.wait / n, a.decode / n}; }
};

}  // namespace tern
