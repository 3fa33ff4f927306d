#undef _FORTIFY_SOURCE  // its longjmp refuses a jump to another stack
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "host_copies.h"

namespace emulation {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kWarp = 32;

enum class State { ready, at_warp, at_block, done };

/// Runs a thread of each block, one block after the other.
struct Fiber {
  jmp_buf place;  // where it goes on
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  State state = State::done;
  dim3 thread;
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<uint64_t> slots;
  int count = 0;
  Fiber* current = nullptr;
  jmp_buf scheduler;
  const std::function<void()>* kernel = nullptr;
};
Block block;
std::mutex one_launch;

int own_index() { return static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x); }

/// Goes on at `to`. Returns when something goes on at `from`. Unlike swapcontext, this makes no system call.
void go_on(jmp_buf from, jmp_buf to) {
  if (_setjmp(from) == 0) _longjmp(to, 1);
}

void wait_as(State state) {
  Fiber& own = *block.current;
  own.state = state;
  go_on(own.place, block.scheduler);
}

void fiber_main() {
  for (;;) {
    wait_as(State::done);  // for the next block
    (*block.kernel)();
  }
}

/// A fiber that waits for its first block.
std::unique_ptr<Fiber> new_fiber() {
  auto fiber = std::make_unique<Fiber>();
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber->stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, fiber_main, 0);
  block.current = fiber.get();
  if (_setjmp(block.scheduler) == 0) setcontext(&context);
  return fiber;
}

void start(Fiber& fiber, dim3 thread) {
  fiber.thread = thread;
  fiber.state = State::ready;
}

/// Releases fibers [first, last) if all of them that are not done wait in `state`. Returns true if it released any.
bool release(int first, int last, State state) {
  bool any = false;
  for (int i = first; i < last; ++i) {
    const State now = block.fibers[i]->state;
    if (now != state && now != State::done) return false;
    any |= now == state;
  }
  for (int i = first; i < last; ++i)
    if (block.fibers[i]->state == state) block.fibers[i]->state = State::ready;
  return any;
}

void run_block() {
  for (;;) {
    bool ran = false;
    for (int i = 0; i < block.count; ++i) {
      Fiber& fiber = *block.fibers[i];
      if (fiber.state != State::ready) continue;
      block.current = &fiber;
      threadIdx = fiber.thread;
      go_on(block.scheduler, fiber.place);
      ran = true;
    }
    for (int first = 0; first < block.count; first += kWarp)
      ran |= release(first, std::min(first + kWarp, block.count), State::at_warp);
    ran |= release(0, block.count, State::at_block);
    if (ran) continue;
    const auto done = [](const auto& fiber) { return fiber->state == State::done; };
    if (std::all_of(block.fibers.begin(), block.fibers.begin() + block.count, done)) return;
    std::fprintf(stderr, "emulation: threads of one block wait at different barriers\n");
    std::abort();
  }
}

}  // namespace

int lane() { return own_index() % kWarp; }
void wait_for_block() { wait_as(State::at_block); }

const uint64_t* exchange(uint64_t value) {
  const int index = own_index(), first = index / kWarp * kWarp;
  static thread_local std::vector<uint64_t> copies(1024 * kWarp);
  block.slots[index] = value;
  wait_as(State::at_warp);
  uint64_t* own = copies.data() + index * kWarp;
  std::copy_n(block.slots.data() + first, kWarp, own);
  wait_as(State::at_warp);
  return own;
}

void run(dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
  const std::lock_guard lock(one_launch);
  block.count = static_cast<int>(threads.x * threads.y * threads.z);
  block.kernel = &kernel;
  block.slots.resize(1024 + kWarp);
  while (static_cast<int>(block.fibers.size()) < block.count) block.fibers.push_back(new_fiber());
  blockDim = threads;
  gridDim = blocks;
  const size_t count = size_t{blocks.x} * blocks.y * blocks.z;
  for (size_t done = 0; done < count; ++done) {
    const size_t b = last_block_first ? count - 1 - done : done;
    blockIdx = dim3(b % blocks.x, b / blocks.x % blocks.y, b / blocks.x / blocks.y);
    for (int i = 0; i < block.count; ++i) {
      const auto number = static_cast<unsigned>(i), row = number / threads.x;
      start(*block.fibers[i], {number % threads.x, row % threads.y, row / threads.y});
    }
    run_block();
  }
}

struct Graph {
  std::vector<std::function<void()>> work;
};
namespace {
/// How much of each stream's captured work comes before a place.
using Before = std::map<const Stream*, size_t>;
/// A capture, and the order of the work in its streams. Other streams join it by an event, and its first stream must
/// wait for all of them in the end.
struct Capture {
  explicit Capture(const Stream* stream) : first(stream), ends{{stream, {}}} {}

  bool has(const Stream* stream) const { return ends.contains(stream); }
  void wait(const Stream* stream, const Before& before) {
    Before& own = ends[stream];
    for (const auto& [other, count] : before) own[other] = std::max(own[other], count);
  }
  bool is_joined() const {
    return std::ranges::all_of(ends, [&](const auto& end) {
      const auto& [stream, before] = end;
      const Before& last = ends.at(first);
      return !before.contains(stream) || (last.contains(stream) && last.at(stream) == before.at(stream));
    });
  }

  Graph graph;
  const Stream* first;
  std::map<const Stream*, Before> ends;
  std::map<const Event*, Before> events;
};
thread_local std::unique_ptr<Capture> captured;

std::mutex all_positions;

/// What has not ended yet. The caller holds the mutex.
const std::vector<Pending>& left_before(Position& position) {
  std::erase_if(position.pending, [](const Pending& work) { return work->load(); });
  return position.pending;
}

bool is_reached(Position& position) {
  const std::lock_guard lock(all_positions);
  return left_before(position).empty();
}
}  // namespace

void add(Stream& stream, Pending work) {
  const std::lock_guard lock(all_positions);
  stream.pending.push_back(std::move(work));
}

void wait_for(Position* position) {
  while (position != nullptr && !is_reached(*position)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

bool lacks(const char* what) {
  const char* const lack = std::getenv("TERN_EMULATED_LACK");
  return lack != nullptr && std::strcmp(lack, what) == 0;
}

bool captures() { return captured != nullptr; }

void issue(Stream* stream, std::function<void()> work) {
  if (captured) {
    if (!captured->has(stream)) {
      std::fprintf(stderr, "emulation: work in a stream that is not part of the capture\n");
      std::abort();
    }
    ++captured->ends[stream][stream];
    return captured->graph.work.push_back(std::move(work));
  }
  wait_for(stream);
  const DeviceAccess access;
  work();
}
size_t captured_launches() { return captured ? captured->graph.work.size() : 0; }

}  // namespace emulation

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (emulation::captured && emulation::captured->events.contains(event)) {
    emulation::captured->wait(stream, emulation::captured->events.at(event));
    return cudaSuccess;
  }
  const std::lock_guard lock(emulation::all_positions);
  const auto& before = emulation::left_before(*event);
  stream->pending.insert(stream->pending.end(), before.begin(), before.end());
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (emulation::captured && emulation::captured->has(stream)) {
    emulation::captured->events[event] = emulation::captured->ends.at(stream);
    return cudaSuccess;
  }
  const std::lock_guard lock(emulation::all_positions);
  event->milliseconds = emulation::device_milliseconds;
  event->pending = stream != nullptr ? emulation::left_before(*stream) : std::vector<emulation::Pending>();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (emulation::fault != cudaSuccess) return emulation::fault;
  return emulation::is_reached(*event) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  emulation::captured = std::make_unique<emulation::Capture>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  const auto capture = std::exchange(emulation::captured, nullptr);
  if (!capture->is_joined()) return static_cast<cudaError_t>(904);  // cudaErrorStreamCaptureUnjoined
  *graph = new emulation::Graph(std::move(capture->graph));
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new emulation::Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  emulation::wait_for(stream);
  const emulation::DeviceAccess access;
  for (const auto& work : graph->work) work();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t) { return "emulated error"; }
const char* cudaGetErrorName(cudaError_t) { return "emulated"; }
cudaError_t cudaGetDeviceCount(int* count) {
  if (emulation::lacks("device")) return cudaErrorNoDevice;
  *count = 12;
  return cudaSuccess;
}
namespace {

constexpr size_t kAlignment = 256;
size_t padded(size_t bytes) { return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment; }

size_t total_memory() {
  const char* const set = std::getenv("TERN_EMULATED_MEMORY");
  return set != nullptr ? std::stoull(set) : size_t{1} << 40;
}

/// The memory of all devices: a range of addresses that is closed unless a DeviceAccess exists.
class DeviceMemory {
 public:
  static DeviceMemory& get() {
    static auto& memory = *new DeviceMemory;  // never destroyed, like the devices
    return memory;
  }

  void open() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) protect(PROT_NONE);
  }

  /// Null if no range of addresses is left.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const size_t size = padded(bytes);
    auto block = std::ranges::find_if(free_, [=](const auto& entry) { return entry.second >= size; });
    if (block == free_.end()) {
      if (end_ + size > kBytes) return nullptr;
      block = free_.emplace(end_, size).first;
      end_ += size;
      if (users_ > 0) protect(PROT_READ | PROT_WRITE);
    }
    const auto [at, whole] = *block;
    free_.erase(block);
    if (whole > size) free_.emplace(at + size, whole - size);
    taken_.emplace(at, size);
    bytes_ += size;
    return base_ + at;
  }
  void give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto block = taken_.find(static_cast<size_t>(static_cast<char*>(memory) - base_));
    if (block == taken_.end()) {
      std::fprintf(stderr, "emulation: cudaFree of memory that is not a device's\n");
      std::abort();
    }
    bytes_ -= block->second;
    auto here = free_.insert(*block).first;
    taken_.erase(block);
    if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
      here->second += next->second;
      free_.erase(next);
    }
    if (here != free_.begin())
      if (const auto before = std::prev(here); before->first + before->second == here->first) {
        before->second += here->second;
        free_.erase(here);
      }
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kBytes = size_t{1} << 38;

  DeviceMemory() {
    void* const range = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) std::abort();
    madvise(range, kBytes, MADV_HUGEPAGE);  // then it is fast to open and to close
    base_ = static_cast<char*>(range);
    struct sigaction action = {};
    action.sa_sigaction = say;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;  // the access is repeated, and then ends the program
    sigaction(SIGSEGV, &action, nullptr);
  }
  static void say(int, siginfo_t* info, void*) {
    constexpr char kText[] = "emulation: code of the CPU touched the memory of a device\n";
    const auto* const at = static_cast<char*>(info->si_addr);
    if (at >= get().base_ && at < get().base_ + kBytes) (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  void protect(int how) {
    if (end_ > 0 && mprotect(base_, end_, how) != 0) std::abort();
  }

  std::mutex mutex_;
  char* base_;
  size_t end_ = 0;                         // of the addresses in use, from base_
  std::map<size_t, size_t> free_, taken_;  // size by address, from base_
  std::atomic<size_t> bytes_ = 0;          // taken
  int users_ = 0;
};

}  // namespace

emulation::DeviceAccess::DeviceAccess() { DeviceMemory::get().open(); }
emulation::DeviceAccess::~DeviceAccess() { DeviceMemory::get().close(); }

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(kAlignment, padded(bytes));
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, bytes);  // NaN: shows elements that nobody wrote
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (DeviceMemory::get().bytes() + bytes > total_memory()) return cudaErrorMemoryAllocation;
  *memory = DeviceMemory::get().take(bytes);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  const emulation::DeviceAccess access;
  std::memset(*memory, 0xff, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory != nullptr) DeviceMemory::get().give_back(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = total_memory();
  *free = *total - std::min(*total, DeviceMemory::get().bytes());
  return cudaSuccess;
}
namespace {

/// The copies by their kind. If TERN_EMULATED_COPIES names a file, writes them there at exit: the number and the bytes
/// of the copies to a device, then of those to the host, then of those within a device.
struct Copies {
  ~Copies() {
    if (const char* const path = std::getenv("TERN_EMULATED_COPIES")) {
      std::ofstream file(path);
      for (const int kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice})
        file << count[kind] << " " << bytes[kind] << "\n";
    }
  }
  std::atomic<uint64_t> count[4] = {}, bytes[4] = {};
};
Copies copies;

}  // namespace
emulation::HostCopies emulation::host_copies() {
  return {copies.bytes[cudaMemcpyHostToDevice], copies.bytes[cudaMemcpyDeviceToHost]};
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, cudaStream_t stream) {
  emulation::issue(stream, [=] {
    std::memcpy(to, from, bytes);
    ++copies.count[kind];
    copies.bytes[kind] += bytes;
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  emulation::wait_for(stream);
  const emulation::DeviceAccess access;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  emulation::issue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
