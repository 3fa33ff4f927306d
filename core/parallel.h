#pragma once

#include <cstdint>
#include <type_traits>

namespace tern {

/// The number of threads that `parallel_for` uses if the calling thread calls it. Each thread has its own number. It
/// starts at the number of processors, or at OMP_NUM_THREADS if that is set.
int thread_count();
/// Sets the number of the calling thread only. Throws if `threads` is less than 1.
void set_thread_count(int threads);

namespace detail {
void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*run)(void*, int64_t, int64_t), void* body);
}

/// Calls `body(first, last)` on disjoint ranges that cover [begin, end), on OpenMP's thread pool. If there is more than
/// one range, each has at least `grain` elements. A call within a body runs in the calling thread, as one range.
/// Otherwise the ranges depend only on [begin, end), the grain and the thread count. If a body throws, the exception is
/// rethrown here.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
  using Value = std::remove_reference_t<Body>;
  detail::parallel_for(
      begin, end, grain,
      [](void* context, int64_t first, int64_t last) { (*static_cast<Value*>(context))(first, last); },
      const_cast<std::remove_const_t<Value>*>(&body));
}

}  // namespace tern
