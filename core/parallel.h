#pragma once

#include <cstdint>
#include <type_traits>

namespace tern {

/// The threads that `parallel_for` uses when the calling thread calls it. Every thread has a number of its own, which
/// starts at the processor's count, or OMP_NUM_THREADS.
int thread_count();
/// Sets the calling thread's number alone.
void set_thread_count(int threads);

namespace detail {
void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*run)(void*, int64_t, int64_t), void* body);
}

/// Calls `body(first, last)` on disjoint ranges that cover [begin, end), each of `grain` elements or more,
/// from the one OpenMP pool. The cut depends on the range, the grain and the thread count alone. Nested
/// calls run in the calling thread. An exception thrown by a body is rethrown here.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
  using Value = std::remove_reference_t<Body>;
  detail::parallel_for(
      begin, end, grain,
      [](void* context, int64_t first, int64_t last) { (*static_cast<Value*>(context))(first, last); },
      const_cast<std::remove_const_t<Value>*>(&body));
}

}  // namespace tern
