#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "tern/core/cuda/runtime.h"
#include "tern/core/device.h"
#include "tern/core/error.h"

namespace tern::cuda {

/// Copies between pageable CPU memory and a device through two pinned buffers in turn: the CPU fills one while the
/// other is copied. Without it the driver waits for the stream before each copy. Used by one thread at a time.
class Staging {
 public:
  Staging();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Puts copies to the device into `stream`, see Upload::copy. The caller may change the sources on return.
  void copy_in(void* target, std::span<const Upload::Part> parts, cudaStream_t stream);
  /// Copies from the device in the order of `stream` and waits for the copy.
  void copy_out(void* target, const void* source, size_t bytes, cudaStream_t stream);

 private:
  struct Buffer {
    void* memory = nullptr;
    Event used;  ///< recorded after the last copy from this buffer to the device
  };
  Buffer buffers_[2];
  int turn_ = 0;
};

namespace {

constexpr size_t kBytes = size_t{4} << 20;

std::byte* at(void* memory, size_t offset) { return static_cast<std::byte*>(memory) + offset; }
const std::byte* at(const void* memory, size_t offset) { return static_cast<const std::byte*>(memory) + offset; }

/// The stream of the Upload whose `run` this thread is in, or null.
thread_local cudaStream_t upload_stream = nullptr;

/// Works on its own stream. `follow` and `join` order it with the kernels' stream.
class CudaUpload final : public Upload {
 public:
  explicit CudaUpload(cudaStream_t kernels) : kernels_(kernels) {
    check_cuda(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "upload");
  }
  ~CudaUpload() override {
    cudaStreamSynchronize(copies_);
    cudaStreamDestroy(copies_);
  }
  void follow() override {
    issued_.record(kernels_);
    issued_.hold(copies_);
  }
  void copy(void* target, std::span<const Part> parts) override { staging_.copy_in(target, parts, copies_); }
  void copy(void* target, std::shared_ptr<const void> source, size_t bytes) override {
    check_cuda(cudaMemcpyAsync(target, source.get(), bytes, cudaMemcpyHostToDevice, copies_), "copy");
    Source& kept = sources_[std::exchange(turn_, 1 - turn_)];
    kept.copied.synchronize();
    kept.memory = std::move(source);
    kept.copied.record(copies_);
  }
  void run(const std::function<void()>& issue) override {
    const Entry entry(copies_);
    issue();
  }
  void join() override {
    copied_.record(copies_);
    copied_.hold(kernels_);
  }

 private:
  /// While it lives, this thread's kernels go to a stream of an Upload.
  struct Entry {
    explicit Entry(cudaStream_t stream) { upload_stream = stream; }
    ~Entry() { upload_stream = nullptr; }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
  };
  /// What the last copies without a stage read.
  struct Source {
    std::shared_ptr<const void> memory;
    Event copied;
  };

  cudaStream_t kernels_, copies_ = nullptr;
  Event issued_, copied_;
  Staging staging_;
  Source sources_[2];
  size_t turn_ = 0;
};

/// Pinned CPU memory: the device reads it by itself. Keeps freed blocks for later requests of the same size, because
/// the system takes milliseconds to pin one. Thread-safe.
class PinnedMemory {
 public:
  std::shared_ptr<void> take(size_t bytes) {
    void* memory = take_free(bytes);
    if (memory == nullptr) check_cuda(cudaMallocHost(&memory, std::max<size_t>(bytes, 1)), "pinned memory");
    return {memory, [this, bytes](void* block) { give_back(block, bytes); }};
  }

 private:
  void* take_free(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(bytes);
    return found == free_.end() ? nullptr : free_.extract(found).mapped();
  }
  void give_back(void* block, size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_.emplace(bytes, block);
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
};

class CudaDevice final : public CachingBackend {
 public:
  explicit CudaDevice(int index) : index_(index) {
    check_cuda(cudaSetDevice(index), "device");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "device");
    staging_ = std::make_unique<Staging>();
  }

  cudaStream_t enter() const {
    check_cuda(cudaSetDevice(index_), "device");
    return upload_stream != nullptr ? upload_stream : stream_;
  }

  void copy(void* target, Device target_device, const void* source, Device source_device, size_t bytes) override {
    if (bytes == 0) return;
    const cudaStream_t stream = enter();
    check(source_device == target_device || !recording(), "copy: from ", source_device, " to ", target_device,
          " in work that is being recorded, expected copies within the device only");
    if (source_device.type == DeviceType::cpu) {
      std::lock_guard lock(staging_mutex_);
      const Upload::Part whole{0, source, bytes};
      staging_->copy_in(target, {&whole, 1}, stream);
    } else if (target_device.type == DeviceType::cpu) {
      std::lock_guard lock(staging_mutex_);
      staging_->copy_out(target, source, bytes, stream);
    } else if (source_device == target_device) {
      check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    } else {
      copy_from_peer(target, source, source_device, bytes, stream);
    }
  }

  void fill_zero(void* memory, size_t bytes) override {
    if (bytes != 0) check_cuda(cudaMemsetAsync(memory, 0, bytes, enter()), "fill_zero");
  }

  void synchronize() override { check_cuda(cudaStreamSynchronize(enter()), "synchronize"); }

  std::unique_ptr<Upload> make_upload() override { return std::make_unique<CudaUpload>(enter()); }
  std::shared_ptr<void> host_memory(size_t bytes) override {
    enter();
    return pinned_.take(bytes);
  }

  std::string name() const override {
    cudaDeviceProp properties;
    check_cuda(cudaGetDeviceProperties(&properties, index_), "device");
    return properties.name;
  }

 private:
  void copy_from_peer(void* target, const void* source, Device peer, size_t bytes, cudaStream_t stream) const {
    device_backend(peer).synchronize();
    enter();
    check_cuda(cudaMemcpyPeerAsync(target, index_, source, peer.index, bytes, stream), "copy");
    check_cuda(cudaStreamSynchronize(stream), "copy");  // the caller may free the source on return
  }

  void* take(size_t bytes) override {
    enter();
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check_cuda(status, "allocate");
    return memory;
  }
  void give_back(void* memory) noexcept override { cudaFree(memory); }
  void refuse(size_t bytes, const MemoryStatistics& statistics) const override {
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "allocate");
    throw ResourceError(join({"device cuda:", index_, ": out of memory: ", bytes,
                              " bytes were asked for (last operation: ", last_operation(), "), ", statistics.in_use,
                              " are in use, ", free, " of ", total, " are free; a smaller batch needs less"}));
  }

  int index_;
  cudaStream_t stream_ = nullptr;
  std::mutex staging_mutex_;
  std::unique_ptr<Staging> staging_;
  PinnedMemory pinned_;
};

/// The number of CUDA devices. Throws InputError with the reason if CUDA finds none.
int device_count(Device wanted) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  check_input(driver != 0, "device ", wanted, ": no NVIDIA driver is loaded on this machine");
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  check_input(status == cudaSuccess, "device ", wanted, ": CUDA finds none: ", cudaGetErrorString(status), " (",
              cudaGetErrorName(status), ")");
  return count;
}

CudaDevice& open(int index) {
  const Device wanted{DeviceType::cuda, index};
  const int count = device_count(wanted);
  check_input(index < count, "device ", wanted, ": this machine has ", count, count == 1 ? " device" : " devices",
              ", counted from cuda:0");
  check_architecture(index);
  return *new CudaDevice(index);  // never destroyed, because tensors in static objects may outlive it
}

CudaDevice& backend(int index) {
  static std::array<std::once_flag, kMaxCudaDevices> once;
  static std::array<CudaDevice*, kMaxCudaDevices> devices;
  const auto place = static_cast<size_t>(index);
  check(index >= 0 && index < kMaxCudaDevices, "device cuda:", index, ": expected 0 to ", kMaxCudaDevices - 1);
  std::call_once(once[place], [&] { devices[place] = &open(index); });
  return *devices[place];
}

}  // namespace

Staging::Staging() {
  for (Buffer& buffer : buffers_) check_cuda(cudaMallocHost(&buffer.memory, kBytes), "pinned memory");
}

Staging::~Staging() {
  for (Buffer& buffer : buffers_) cudaFreeHost(buffer.memory);
}

void Staging::copy_in(void* target, std::span<const Upload::Part> parts, cudaStream_t stream) {
  size_t begin = 0, end = 0;  // of the target's bytes that the buffer holds
  const auto send = [&] {
    if (begin == end) return;
    Buffer& buffer = buffers_[turn_];
    turn_ = 1 - turn_;
    check_cuda(cudaMemcpyAsync(at(target, begin), buffer.memory, end - begin, cudaMemcpyHostToDevice, stream), "copy");
    buffer.used.record(stream);
  };
  for (const auto& [offset, source, bytes] : parts)
    for (size_t done = 0; done < bytes;) {
      const size_t place = offset + done;
      if (begin == end || place >= begin + kBytes) {
        send();
        begin = place;
        buffers_[turn_].used.synchronize();
      }
      const size_t count = std::min(bytes - done, begin + kBytes - place);
      std::memcpy(at(buffers_[turn_].memory, place - begin), at(source, done), count);
      done += count;
      end = place + count;
    }
  send();
}

void Staging::copy_out(void* target, const void* source, size_t bytes, cudaStream_t stream) {
  if (bytes > kBytes) {  // this copy is waited for anyway, and then the driver's own way is as fast
    check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, stream), "copy");
    check_cuda(cudaStreamSynchronize(stream), "copy");
    return;
  }
  Buffer& buffer = buffers_[turn_];
  buffer.used.synchronize();
  check_cuda(cudaMemcpyAsync(buffer.memory, source, bytes, cudaMemcpyDeviceToHost, stream), "copy");
  check_cuda(cudaStreamSynchronize(stream), "copy");
  std::memcpy(target, buffer.memory, bytes);
}

}  // namespace tern::cuda

namespace tern {
namespace cuda {
cudaStream_t enter(Device device) { return backend(device.index).enter(); }

CachingBackend& memory(Device device) { return backend(device.index); }

}  // namespace cuda

DeviceBackend& cuda_device(int index) { return cuda::backend(index); }
int cuda_device_count() { return cuda::device_count({DeviceType::cuda}); }

}  // namespace tern
