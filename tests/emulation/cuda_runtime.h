#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

// The part of CUDA that tern's kernels use, on the CPU. It runs one block after the other. Each thread is a fiber that
// runs until it must wait for others. It finds wrong indices, missing barriers that all threads must reach, unwritten
// outputs (new memory is NaN), and CPU code that touches a device's memory: only the device's work can, and otherwise
// the program ends. If several threads have devices, it can miss such code while another thread's device works. The
// work of a stream is done when its call returns, except that of NCCL: an event after it is not ready, and a stream
// that waits for the event blocks the caller at the next work that it is given. It cannot find races between warps, and
// it says nothing about speed.

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace emulation {

void wait_for_block();
/// Gives every lane of the warp the `value` of all lanes. Slot i is lane i's.
const uint64_t* exchange(uint64_t value);
void run(dim3 blocks, dim3 threads, const std::function<void()>& kernel);
/// Whether the blocks of a launch run from the last to the first.
inline bool last_block_first = false;

/// Whether TERN_EMULATED_LACK names `what`: driver, device, code (for it), epilogues (cublasLt.h) or pointwise
/// (cudnn.h).
bool lacks(const char* what);

/// While one exists, the memory of the devices can be read and written.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

/// Work that goes on after its call; true once it has ended.
using Pending = std::shared_ptr<const std::atomic<bool>>;
/// The end of a stream, or an event: its time, and the work that has to end before it.
struct Position {
  float milliseconds = 0;
  std::vector<Pending> pending = {};
};
struct Stream : Position {};
struct Event : Position {};
/// Puts work into `stream` that goes on.
void add(Stream& stream, Pending work);
/// Waits until the work before this place has ended. Nothing is before a null stream.
void wait_for(Position* position);

/// The work that a captured stream was given, in order.
struct Graph;
/// Does `work` after what `stream` waits for. If this thread captures a graph, `work` runs with every launch of the
/// graph instead.
void issue(Stream* stream, std::function<void()> work);
/// Whether this thread captures a graph.
bool captures();
/// The number of launches, copies and fills in the graph that this thread captures.
size_t captured_launches();

template <class T>
T shuffle(T value, int lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const uint64_t* slots = exchange(bits);
  std::memcpy(&value, &slots[lane], sizeof(T));
  return value;
}
int lane();

}  // namespace emulation

/// The indices and sizes of the running fiber.
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { emulation::wait_for_block(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulation::shuffle(value, emulation::lane() ^ mask);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulation::shuffle(value, lane & 31);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  const uint64_t* slots = emulation::exchange(vote ? 1 : 0);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<unsigned>(slots[i]) << i;
  return bits;
}
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* number, unsigned most) {
  return std::exchange(*number, *number >= most ? 0 : *number + 1);
}
inline unsigned atomicAdd(unsigned* number, unsigned more) { return std::exchange(*number, *number + more); }
inline unsigned atomicOr(unsigned* number, unsigned bits) { return std::exchange(*number, *number | bits); }
inline unsigned atomicMin(unsigned* number, unsigned other) { return std::exchange(*number, std::min(*number, other)); }
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
/// Each call is far later than the one before.
inline long long clock64() {
  static std::atomic<long long> clock = 0;
  return clock += 1'000'000'000;
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
};
using cudaStream_t = emulation::Stream*;
using cudaEvent_t = emulation::Event*;
using cudaGraph_t = emulation::Graph*;
using cudaGraphExec_t = emulation::Graph*;
using cudaGraphNode_t = const void*;
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };

struct cudaFuncAttributes {};
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int major, minor;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace emulation {

/// The error that a broken device returns from every call from then on.
inline std::atomic<cudaError_t> fault = cudaSuccess;
/// The error that a call of an emulated library has left.
inline thread_local cudaError_t last_error = cudaSuccess;
/// The time of the device. It advances by the times of the emulated libraries' work.
inline std::atomic<float> device_milliseconds = 0;

}  // namespace emulation

const char* cudaGetErrorString(cudaError_t);
const char* cudaGetErrorName(cudaError_t);
inline cudaError_t cudaPeekAtLastError() {
  return emulation::fault != cudaSuccess ? emulation::fault.load() : emulation::last_error;
}
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  emulation::last_error = cudaSuccess;
  return error;
}
cudaError_t cudaGetDeviceCount(int* count);
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = emulation::lacks("driver") ? 0 : 13000;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  std::strcpy(properties->name, "emulated device");
  properties->uuid = {{static_cast<char>(device)}};
  properties->major = 9;
  properties->minor = 0;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
  return emulation::lacks("code") ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
/// A device has TERN_EMULATED_MEMORY bytes, or 1 TiB if that is not set.
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, cudaStream_t);
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t);
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new emulation::Stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emulation::wait_for(stream);
  return emulation::fault;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new emulation::Event;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t);
cudaError_t cudaEventQuery(cudaEvent_t event);
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  emulation::wait_for(event);
  return emulation::fault;
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = to->milliseconds - from->milliseconds;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  emulation::issue(config->stream, [blocks = config->gridDim, threads = config->blockDim, kernel, arguments...] {
    emulation::run(blocks, threads, [&] { kernel(arguments...); });
  });
  return cudaSuccess;
}
