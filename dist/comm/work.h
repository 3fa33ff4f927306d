#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

namespace tern {

namespace detail {

/// A queue of operations that runs one at a time, in the order of `add`, on any thread that calls `help` or `run`.
/// Shared by a WorkQueue and its Works. Thread-safe.
class Tasks {
 public:
  /// Returns the operation's number, from 1.
  uint64_t add(std::packaged_task<void()> task);
  /// Runs the operations that have not begun, up to operation `number`. Returns early if another thread runs one.
  void help(uint64_t number);
  /// Runs all operations as they come, until `end`.
  void run();
  void end();

 private:
  void run_first(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  uint64_t added_ = 0;
  uint64_t helped_ = 0;  ///< operations that `help` has begun
  bool dozes_ = false;   ///< the thread in `run` wakes by itself, after `doze_`
  std::chrono::nanoseconds doze_{};
  bool running_ = false;
  bool ending_ = false;
};

}  // namespace detail

/// A handle for an operation. Any thread may copy it and wait on it. Dropping it does not wait.
class Work {
 public:
  /// Returns after the operation has ended, and throws what it or its `joined` threw. This thread runs the operations
  /// that its queue has not begun yet: a short operation takes less time than waking another thread.
  void wait() const;
  bool done() const { return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  friend class WorkQueue;
  Work(std::shared_ptr<detail::Tasks> tasks, std::packaged_task<void()> task, std::function<void()> joined);

  std::shared_ptr<detail::Tasks> tasks_;
  std::shared_future<void> result_;
  std::function<void()> joined_;
  uint64_t number_;
};

/// Runs operations one after the other, in the order of `add`, on its own thread or on a thread that waits for them.
/// Any thread may call `add`. The destructor waits for all operations.
class WorkQueue {
 public:
  WorkQueue() : WorkQueue([] {}) {}
  /// `begin` runs first, on the queue's own thread.
  explicit WorkQueue(std::function<void()> begin)
      : thread_([tasks = tasks_, begin = std::move(begin)] {
          begin();
          tasks->run();
        }) {}
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Each `wait` of the Work calls `joined` after the operation, unless it threw. It may outlive the queue.
  Work add(std::function<void()> operation, std::function<void()> joined = {}) {
    return {tasks_, std::packaged_task<void()>(std::move(operation)), std::move(joined)};
  }

 private:
  std::shared_ptr<detail::Tasks> tasks_ = std::make_shared<detail::Tasks>();
  std::thread thread_;
};

}  // namespace tern
