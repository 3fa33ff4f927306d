#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace tern {

/// An operation under way: a handle to be copied freely and waited on from any thread. Who drops it need not wait.
class Work {
 public:
  explicit Work(std::shared_future<void> result) : result_(std::move(result)) {}

  /// Returns once the operation has ended; throws what it threw.
  void wait() const { result_.get(); }
  bool done() const { return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::shared_future<void> result_;
};

/// Runs operations one after the other on a thread of its own, in the order of `add`, which any thread may call.
/// Destruction waits for all of them.
class WorkQueue {
 public:
  WorkQueue() : thread_([this] { run(); }) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  Work add(std::function<void()> operation);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tern
