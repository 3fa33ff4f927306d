#include "tern/dist/comm/work.h"

#include <algorithm>
#include <utility>

namespace tern {
namespace detail {
namespace {

/// If callers wait for their operations at once, they run them, and the queue's thread looks for work by itself. To
/// wake it for each operation takes as long as a short operation. It sleeps four times as long as the last operation
/// took, within these limits.
constexpr std::chrono::milliseconds kShortestDoze{1}, kLongestDoze{20};

}  // namespace

uint64_t Tasks::add(std::packaged_task<void()> task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  if (!dozes_ || waiting_.size() > 1) changed_.notify_one();
  return ++added_;
}

void Tasks::help(uint64_t number) {
  std::unique_lock lock(mutex_);
  while (!running_ && added_ - waiting_.size() < number) {
    ++helped_;
    const auto begin = std::chrono::steady_clock::now();
    run_first(lock);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
    doze_ = std::clamp<std::chrono::nanoseconds>(4 * taken, kShortestDoze, kLongestDoze);
  }
  if (!running_ && (ending_ || !waiting_.empty())) changed_.notify_one();
}

void Tasks::run() {
  const auto may_go_on = [this] { return !running_ && (ending_ || !waiting_.empty()); };
  std::unique_lock lock(mutex_);
  for (uint64_t seen = 0;;) {
    while (!may_go_on()) {
      dozes_ = std::exchange(seen, helped_) != helped_;
      if (dozes_)
        changed_.wait_for(lock, doze_);
      else
        changed_.wait(lock);
    }
    dozes_ = false;
    if (waiting_.empty()) return;
    run_first(lock);
    seen = helped_;
  }
}

void Tasks::end() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_one();
}

void Tasks::run_first(std::unique_lock<std::mutex>& lock) {
  std::packaged_task<void()> task = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = true;
  lock.unlock();
  task();
  task = {};  // frees what the operation held before the next wait
  lock.lock();
  running_ = false;
}

}  // namespace detail

Work::Work(std::shared_ptr<detail::Tasks> tasks, std::packaged_task<void()> task, std::function<void()> joined)
    : tasks_(std::move(tasks)),
      result_(task.get_future().share()),
      joined_(std::move(joined)),
      number_(tasks_->add(std::move(task))) {}

void Work::wait() const {
  if (!done()) tasks_->help(number_);
  result_.get();
  if (joined_) joined_();
}

WorkQueue::~WorkQueue() {
  tasks_->end();
  thread_.join();
}

}  // namespace tern
