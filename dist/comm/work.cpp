#include "tern/dist/comm/work.h"

namespace tern {
namespace detail {

uint64_t Tasks::add(std::packaged_task<void()> task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(task));
  changed_.notify_one();
  return ++added_;
}

void Tasks::help(uint64_t number) {
  std::unique_lock lock(mutex_);
  while (!running_ && added_ - waiting_.size() < number) run_first(lock);
  if (!running_ && (ending_ || !waiting_.empty())) changed_.notify_one();
}

void Tasks::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !running_ && (ending_ || !waiting_.empty()); });
    if (waiting_.empty()) return;
    run_first(lock);
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

Work::Work(std::shared_ptr<detail::Tasks> tasks, std::packaged_task<void()> task)
    : tasks_(std::move(tasks)), result_(task.get_future().share()), number_(tasks_->add(std::move(task))) {}

void Work::wait() const {
  if (!done()) tasks_->help(number_);
  result_.get();
}

WorkQueue::~WorkQueue() {
  tasks_->end();
  thread_.join();
}

}  // namespace tern
