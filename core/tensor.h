#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tern/core/device.h"
#include "tern/core/dtype.h"
#include "tern/core/shape.h"

namespace tern {

/// The memory layout of a dense tensor. The logical order of dimensions is N, C, H, W in both.
enum class MemoryFormat : uint8_t {
  row_major,      ///< the last dimension is contiguous
  channels_last,  ///< rank 4 only: memory order N, H, W, C
};

std::string to_string(MemoryFormat format);

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};
  MemoryFormat format = MemoryFormat::row_major;
};

class Storage;

/// A dense array: a cheap value handle on shared storage. A copy of a Tensor shares its elements; `clone` copies them.
/// Views are reshapes and slices of the first dimension. Different threads may use different handles. The caller must
/// order concurrent writes to shared elements.
class Tensor {
 public:
  /// An undefined tensor, without storage. `defined()` is false, and most calls on it throw.
  Tensor() = default;

  static Tensor empty(const Shape& shape, const TensorOptions& options = {});
  static Tensor zeros(const Shape& shape, const TensorOptions& options = {});
  static Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
  /// Returns a CPU tensor with these elements, in row-major order. T is an element type. Throws if the number of values
  /// is not the number of elements of `shape`.
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }
  /// Uninitialised, with the shape, dtype, device and format of `like`.
  static Tensor empty_like(const Tensor& like);
  static Tensor zeros_like(const Tensor& like);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int dimension) const { return shape_[dimension]; }
  int64_t numel() const { return shape_.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const;
  MemoryFormat format() const { return format_; }
  TensorOptions options() const { return {dtype_, device(), format_}; }

  /// The elements in storage order. Throws if T is not the dtype. Points to device memory if the tensor is not on the
  /// CPU.
  template <class T>
  T* data() const;
  void* raw_data() const;
  /// The same for loops over the elements. Throws if the tensor is not on the CPU.
  template <class T>
  std::span<T> span() const {
    check_on_cpu();
    return {data<T>(), static_cast<size_t>(numel())};
  }
  /// The element of a tensor with exactly one element, converted to double. Waits for the device.
  double item() const;
  /// A copy of the elements in row-major order on the CPU, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  /// The same elements with another shape, sharing storage. One extent may be -1: it is computed from the others.
  /// Throws if the number of elements differs, or if the shape differs and the format is not row_major.
  Tensor reshape(std::span<const int64_t> extents) const;
  Tensor reshape(std::initializer_list<int64_t> extents) const {
    return reshape(std::span(extents.begin(), extents.size()));
  }
  Tensor reshape(const Shape& shape) const { return reshape(std::span(shape.begin(), shape.end())); }
  /// Rows [begin, end) of the first dimension, sharing storage.
  Tensor slice(int64_t begin, int64_t end) const;
  /// The tensor whose elements are the bytes of this u8 tensor from `offset` on, sharing storage. Throws if they do not
  /// fit there, or if their place in the storage is no multiple of an element's size.
  Tensor view(size_t offset, const Shape& shape, DType dtype, MemoryFormat format = MemoryFormat::row_major) const;

  Tensor clone() const;
  /// Returns this tensor, or a view, if its elements already are of that dtype, device or order; or a converted copy.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(MemoryFormat format) const;

  /// Overwrites the elements of this tensor. The shapes must be the same; dtype, device and format may differ. The
  /// memory of the two must not overlap, unless it is the same. `fill`, and `copy_from` if dtype or format differ, go
  /// through the CPU. Within a training step use kernels::convert and kernels::fill, which run on the device of the
  /// tensor.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

  /// Changes if the storage is written to: by `fill`, `copy_from`, kernels, collective operations and, for parameters,
  /// optimizers. These writes do not change it: those through `data`, of codecs, of a `Recording`, and of optimizers to
  /// their state. Call `mark_written` after a write through `data`. Thread-safe.
  uint32_t version() const;
  void mark_written() const;

  /// Whether another live Tensor shares the storage. If false, no other tensor sees a write in place.
  bool is_shared() const { return storage_.use_count() > 1; }

 private:
  Tensor(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype, MemoryFormat format);
  void check_on_cpu() const;

  std::shared_ptr<Storage> storage_;
  size_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  MemoryFormat format_ = MemoryFormat::row_major;
};

/// Distance in elements between neighbours along N, C, H and W of a rank-4 tensor.
struct Strides4 {
  int64_t n, c, h, w;
};
Strides4 strides4(const Tensor& tensor);

}  // namespace tern
