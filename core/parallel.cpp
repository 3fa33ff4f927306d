#include "tern/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tern/core/error.h"

namespace tern {

namespace {

/// Prints a note, once, if loops have run for two seconds and nobody has chosen how OpenMP's threads wait.
void note_spinning() {
  using Clock = std::chrono::steady_clock;
  static std::atomic<bool> silent = std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT");
  if (silent.load(std::memory_order_relaxed)) return;
  static const Clock::time_point first = Clock::now();
  if (Clock::now() - first < std::chrono::seconds(2) || silent.exchange(true)) return;
  std::fputs(
      "note: OpenMP's threads spin while they wait, which slows down training. Call tern::wait_passively(argc, argv) "
      "first in main, or set OMP_WAIT_POLICY=PASSIVE.\n",
      stderr);
}

}  // namespace

int thread_count() { return omp_get_max_threads(); }

void set_thread_count(int threads) {
  check(threads >= 1, "set_thread_count: ", threads, " threads, expected 1 or more");
  omp_set_num_threads(threads);
}

void detail::parallel_for(int64_t begin, int64_t end, int64_t grain, void (*run)(void*, int64_t, int64_t), void* body) {
  const int64_t count = end - begin;
  if (count <= 0) return;
  const int64_t parts = std::min<int64_t>(thread_count(), std::max<int64_t>(1, count / std::max<int64_t>(grain, 1)));
  if (parts == 1 || omp_in_parallel()) {
    run(body, begin, end);
    return;
  }
  note_spinning();
  std::exception_ptr failure;
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(parts))
  for (int64_t part = 0; part < parts; ++part) {
    try {
      run(body, begin + count * part / parts, begin + count * (part + 1) / parts);
    } catch (...) {
#pragma omp critical(tern_parallel_for)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tern
