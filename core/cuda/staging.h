#pragma once

#include <cstddef>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Copies between pageable CPU memory and a device through two pinned buffers by turns: while one travels the other is
/// filled. Without it the driver would wait for the stream before each copy. Used by one thread at a time.
class Staging {
 public:
  Staging();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Puts a copy to the device into `stream`; `source` may change on return.
  void copy_in(void* target, const void* source, size_t bytes, cudaStream_t stream);
  /// Copies from the device in `stream`'s order and waits for it.
  void copy_out(void* target, const void* source, size_t bytes, cudaStream_t stream);

 private:
  struct Buffer {
    void* memory = nullptr;
    Event used;  ///< after its last copy to the device
  };
  Buffer buffers_[2];
  int turn_ = 0;
};

}  // namespace tern::cuda
