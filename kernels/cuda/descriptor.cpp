#include "tern/kernels/cuda/descriptor.h"

#include <array>

#include "tern/core/error.h"

namespace tern::cuda {

void check_cudnn(cudnnStatus_t status, const char* operation) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  fail({operation, ": cuDNN: ", cudnnGetErrorString(status), detail[0] != '\0' ? ": " : "", detail.data()});
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, const char* operation) : operation_(operation) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_), operation);
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                            const void* values) {
  check_cudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values), operation_);
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> others) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& other : others) handles.push_back(other.descriptor_);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(handles.size()), handles.data());
}

Descriptor& Descriptor::finish() {
  check_cudnn(cudnnBackendFinalize(descriptor_), operation_);
  return *this;
}

bool Descriptor::try_finish() { return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  return values<int64_t>(name, CUDNN_TYPE_INT64, 1).at(0);
}

std::vector<Descriptor> Descriptor::children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t element,
                                             int64_t most) const {
  int64_t count = most;
  if (most == 0)
    check_cudnn(cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                operation_);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) handles.push_back(found.emplace_back(element, operation_).descriptor_);
  if (count > 0)
    check_cudnn(
        cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
        operation_);
  found.erase(found.begin() + count, found.end());
  return found;
}

}  // namespace tern::cuda
