#include "tern/trainer/rank/pulse.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/comm/in_process.h"

namespace tern::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCounterBytes = kMaxRanks * sizeof(std::atomic<int64_t>);
static_assert(std::atomic<int64_t>::is_always_lock_free, "a lock would not reach other processes");

int make_memory() {
  const int descriptor = ::memfd_create("tern-pulse", MFD_CLOEXEC);
  check(descriptor >= 0 && ::ftruncate(descriptor, kCounterBytes) == 0,
        "memory to share with ranks: ", std::strerror(errno));
  return descriptor;
}

}  // namespace

void Pulse::beat() const { store(Clock::now()); }

void Pulse::store(Clock::time_point time) const {
  if (cell_) cell_->store(time.time_since_epoch().count());
}

Clock::time_point Pulse::last() const {
  const Clock::time_point noted{Clock::duration(cell_ ? cell_->load() : 0)};
  return noted == Clock::time_point::max() ? Clock::now() : noted;
}

Pulse::Work::Work(const Pulse& pulse) : pulse_(pulse) { pulse_.store(Clock::time_point::max()); }

PulseMemory::PulseMemory() : PulseMemory(make_memory()) {}

PulseMemory::PulseMemory(int descriptor) : descriptor_(descriptor) {
  void* const memory = ::mmap(nullptr, kCounterBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  check(memory != MAP_FAILED, "memory to share with ranks: ", std::strerror(errno));
  cells_ = static_cast<std::atomic<int64_t>*>(memory);
}

PulseMemory::~PulseMemory() {
  ::munmap(cells_, kCounterBytes);
  ::close(descriptor_);
}

}  // namespace tern::trainer
