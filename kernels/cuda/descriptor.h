#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tern::cuda {

/// Throws an Error "operation: what cuDNN says" unless the call succeeded.
void check_cudnn(cudnnStatus_t status, const char* operation);

/// A descriptor of cuDNN's backend API: created, its attributes set, then finished. Owns the handle.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, const char* operation);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), operation_(other.operation_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(operation_, other.operation_);
    return *this;
  }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    return set(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> others);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) { return set(name, std::span(&other, 1)); }
  /// An error names the operation where cuDNN refuses; `try_finish` returns false then.
  Descriptor& finish();
  bool try_finish();

  int64_t integer(cudnnBackendAttributeName_t name) const;
  /// The descriptors that `name` holds, of type `element`; the count is asked for unless `most` are expected.
  std::vector<Descriptor> children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t element,
                                   int64_t most = 0) const;
  /// The values of an attribute of up to `most` values.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most) const {
    std::vector<T> found(static_cast<size_t>(most));
    int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(descriptor_, name, type, most, &count, found.data()), operation_);
    found.resize(static_cast<size_t>(count));
    return found;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values);

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  const char* operation_;
};

}  // namespace tern::cuda
