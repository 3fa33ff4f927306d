#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tern/core/device.h"
#include "tern/core/dtype.h"
#include "tern/core/shape.h"

namespace tern {

/// How a dense tensor's elements lie in memory. The logical order of dimensions is N, C, H, W in both.
enum class MemoryFormat : uint8_t {
  row_major,      ///< the last dimension is contiguous
  channels_last,  ///< rank 4 only: N, H, W, C
};

std::string to_string(MemoryFormat format);

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};
  MemoryFormat format = MemoryFormat::row_major;
};

class Storage;

/// A dense array: a cheap value handle on shared storage. Copying a Tensor shares its elements,
/// `clone` copies them. A view is a reshape or a slice of the first dimension. Distinct handles may be
/// used from distinct threads; concurrent writes to shared elements are the caller's to order.
class Tensor {
 public:
  /// Undefined: no storage. `defined()` is false, and most calls on it are errors.
  Tensor() = default;

  static Tensor empty(const Shape& shape, const TensorOptions& options = {});
  static Tensor zeros(const Shape& shape, const TensorOptions& options = {});
  static Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
  /// A CPU tensor with these elements in row-major order; T is an element type.
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

  /// The elements in storage order; an error if T is not the dtype. Device memory off the CPU.
  template <class T>
  T* data() const;
  void* raw_data() const;
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<size_t>(numel())};
  }
  /// The single element of a tensor with one, converted; waits for the device.
  double item() const;
  /// A copy of the elements in row-major order on the CPU, converted to T.
  template <class T>
  std::vector<T> to_vector() const;

  /// Same elements under another shape; one extent may be -1. Needs row_major, unless the shape is the same.
  Tensor reshape(std::span<const int64_t> extents) const;
  Tensor reshape(std::initializer_list<int64_t> extents) const {
    return reshape(std::span(extents.begin(), extents.size()));
  }
  Tensor reshape(const Shape& shape) const { return reshape(std::span(shape.begin(), shape.end())); }
  /// Rows [begin, end) of the first dimension, sharing storage.
  Tensor slice(int64_t begin, int64_t end) const;

  Tensor clone() const;
  /// This tensor where it already is so; a converted copy otherwise.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(MemoryFormat format) const;

  /// Overwrites this tensor's elements; same shape, any dtype, device and format. Another dtype or format, and `fill`,
  /// go through the CPU: within a training step kernels::convert and kernels::fill do it where the tensor lives.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

  /// Whether another live Tensor shares the storage. False means that writing in place disturbs nobody.
  bool is_shared() const { return storage_.use_count() > 1; }

 private:
  Tensor(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype, MemoryFormat format);

  std::shared_ptr<Storage> storage_;
  size_t byte_offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  MemoryFormat format_ = MemoryFormat::row_major;
};

/// Elements between neighbours along each of N, C, H, W of a rank-4 tensor.
struct Strides4 {
  int64_t n, c, h, w;
};
Strides4 strides4(const Tensor& tensor);

}  // namespace tern
