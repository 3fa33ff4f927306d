#include "tern/apps/trainer/job/rank_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/comm/in_process.h"

namespace tern {
namespace {

/// What ended a job of several ranks; thread-safe.
class FirstCause {
 public:
  /// Notes the exception under way. A PeerError tells of another rank's end: that rank's own error is the cause.
  void note() {
    const std::lock_guard lock(mutex_);
    try {
      throw;
    } catch (const PeerError&) {
      if (!lost_) lost_ = std::current_exception();
    } catch (...) {
      if (!own_) own_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (own_) std::rethrow_exception(own_);
    if (lost_) std::rethrow_exception(lost_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr own_, lost_;
};

}  // namespace

void run_rank_threads(int ranks, int threads, const std::function<void(int rank)>& body) {
  FirstCause cause;
  std::vector<std::thread> running;
  for (int rank = 0; rank < ranks; ++rank)
    running.emplace_back([&, rank] {
      try {
        set_thread_count(threads);
        body(rank);
      } catch (...) {
        cause.note();
      }
    });
  for (auto& rank : running) rank.join();
  cause.rethrow();
}

void run_rank_threads(int ranks, int threads, const std::function<void(std::unique_ptr<Transport>)>& body) {
  auto transports = make_in_process(ranks);
  run_rank_threads(ranks, threads, [&](int rank) { body(std::move(transports[static_cast<size_t>(rank)])); });
}

}  // namespace tern
