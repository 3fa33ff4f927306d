#include "tern/core/cuda/recorded_step.h"

#include <utility>

#include "tern/core/error.h"

namespace tern::cuda {
namespace {

thread_local RecordedStep* current = nullptr;

/// While it lives, this thread records.
struct Current {
  explicit Current(RecordedStep* step) { current = step; }
  ~Current() { current = nullptr; }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

}  // namespace

void RecordedStep::record(const std::function<void()>& work) {
  const Current here(this);
  work();
}

void RecordedStep::set(uint32_t step) {
  check(prepare_.empty() || step > last_, "replay: found step ", step, " after step ", last_,
        ", expected a later one, because ranks take part in it");
  for (const auto& prepare : prepare_) prepare(step);
  last_ = step;
  if (is_read_) number_.copy_from(Tensor::full({}, step, {.dtype = DType::i64}));
}

bool records() { return current != nullptr; }

const int64_t* recorded_step() {
  if (current == nullptr) return nullptr;
  current->is_read_ = true;
  return current->number_.data<int64_t>();
}

void before_replays(std::function<void(uint32_t)> prepare) {
  check(current != nullptr, "before_replays: this thread records nothing");
  current->prepare_.push_back(std::move(prepare));
}

}  // namespace tern::cuda
