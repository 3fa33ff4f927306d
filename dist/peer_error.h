#pragma once

#include "tern/core/error.h"

namespace tern {

/// The ranks can no longer work together: one was lost, hangs, speaks otherwise or holds other settings. Names the
/// rank at fault and the cause; the same text on every rank that survives. Applications end with code 3.
class PeerError : public Error {
 public:
  using Error::Error;
};

}  // namespace tern
