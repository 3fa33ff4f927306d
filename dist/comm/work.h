#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

namespace tern {

namespace detail {

/// Operations in the order in which they were added, of which one runs at a time, on whatever thread takes it. Shared
/// by a WorkQueue and its Works; thread-safe.
class Tasks {
 public:
  /// Returns its number, from 1.
  uint64_t add(std::packaged_task<void()> task);
  /// Runs what has not begun, up to and with operation `number`, unless another thread is at it.
  void help(uint64_t number);
  /// Runs them all as they come, until `end`.
  void run();
  void end();

 private:
  void run_first(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  uint64_t added_ = 0;
  bool running_ = false;
  bool ending_ = false;
};

}  // namespace detail

/// An operation under way: a handle to be copied freely and waited on from any thread. Who drops it need not wait.
class Work {
 public:
  /// Returns once the operation has ended; throws what it threw. What its queue has not begun by now, this thread does
  /// itself: a short operation is done sooner than another thread wakes up.
  void wait() const;
  bool done() const { return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  friend class WorkQueue;
  Work(std::shared_ptr<detail::Tasks> tasks, std::packaged_task<void()> task);

  std::shared_ptr<detail::Tasks> tasks_;
  std::shared_future<void> result_;
  uint64_t number_;
};

/// Runs operations one after the other in the order of `add`, which any thread may call: on a thread of its own, or on
/// one that waits for them. Destruction waits for all of them.
class WorkQueue {
 public:
  WorkQueue() : WorkQueue([] {}) {}
  /// `begin` runs first of all, on the queue's own thread.
  explicit WorkQueue(std::function<void()> begin)
      : thread_([tasks = tasks_, begin = std::move(begin)] {
          begin();
          tasks->run();
        }) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  Work add(std::function<void()> operation) { return {tasks_, std::packaged_task<void()>(std::move(operation))}; }

 private:
  std::shared_ptr<detail::Tasks> tasks_ = std::make_shared<detail::Tasks>();
  std::thread thread_;
};

}  // namespace tern
