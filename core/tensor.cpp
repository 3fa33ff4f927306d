#include "tern/core/tensor.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/visit.h"

namespace tern {

/// A block of device memory. Returns to its backend when the last tensor that shares it is destroyed.
class Storage {
 public:
  Storage(size_t bytes, Device device)
      : backend_(device_backend(device)), device_(device), bytes_(bytes), memory_(backend_.allocate(bytes)) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { backend_.deallocate(memory_, bytes_); }

  Device device() const { return device_; }
  void* memory() const { return memory_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void mark_written() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  DeviceBackend& backend_;
  std::atomic<uint32_t> version_ = 0;
  Device device_;
  size_t bytes_;
  void* memory_;
};

namespace {

constexpr int64_t kGrain = 1 << 15;

bool on_cpu(const Tensor& tensor) { return tensor.device().type == DeviceType::cpu; }

template <class From, class To>
void convert(const From* source, To* target, int64_t count) {
  parallel_for(0, count, kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) target[i] = static_cast<To>(source[i]);
  });
}

/// Copies `source` to `target`. Both have rank 4 and the same dtype, but different formats.
template <class T>
void permute(const Tensor& source, const Tensor& target) {
  const int64_t channels = source.size(1), pixels = source.size(2) * source.size(3);
  const bool to_last = target.format() == MemoryFormat::channels_last;
  const int64_t rows = to_last ? pixels : channels, columns = to_last ? channels : pixels;
  const T* from = source.data<T>();
  T* to = target.data<T>();
  parallel_for(0, source.size(0) * rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   const T* image = from + i / rows * rows * columns;
                   const int64_t row = i % rows;
                   for (int64_t column = 0; column < columns; ++column)
                     to[i * columns + column] = image[column * rows + row];
                 }
               });
}

}  // namespace

std::string to_string(MemoryFormat format) { return format == MemoryFormat::row_major ? "row_major" : "channels_last"; }

Tensor::Tensor(std::shared_ptr<Storage> storage, size_t byte_offset, const Shape& shape, DType dtype,
               MemoryFormat format)
    : storage_(std::move(storage)), byte_offset_(byte_offset), shape_(shape), dtype_(dtype), format_(format) {}

Tensor Tensor::empty(const Shape& shape, const TensorOptions& options) {
  check(options.format == MemoryFormat::row_major || shape.rank() == 4, "tensor: channels_last needs 4 dimensions, ",
        shape, " has ", shape.rank());
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(options.dtype);
  return {std::make_shared<Storage>(bytes, options.device), 0, shape, options.dtype, options.format};
}

Tensor Tensor::zeros(const Shape& shape, const TensorOptions& options) {
  Tensor tensor = empty(shape, options);
  device_backend(options.device).fill_zero(tensor.raw_data(), tensor.bytes());
  return tensor;
}

Tensor Tensor::full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor tensor = empty(shape, options);
  tensor.fill(value);
  return tensor;
}

template <class T>
Tensor Tensor::from(const Shape& shape, std::span<const T> values) {
  check(shape.numel() == static_cast<int64_t>(values.size()), "tensor: ", values.size(), " values for shape ", shape);
  Tensor tensor = empty(shape, {.dtype = dtype_of<T>});
  std::ranges::copy(values, tensor.data<T>());
  return tensor;
}

Tensor Tensor::empty_like(const Tensor& like) { return empty(like.shape(), like.options()); }
Tensor Tensor::zeros_like(const Tensor& like) { return zeros(like.shape(), like.options()); }

Device Tensor::device() const {
  check(defined(), "tensor: undefined, expected one with elements");
  return storage_->device();
}

void* Tensor::raw_data() const {
  check(defined(), "tensor: undefined, expected one with elements");
  return static_cast<std::byte*>(storage_->memory()) + byte_offset_;
}

uint32_t Tensor::version() const { return defined() ? storage_->version() : 0; }
void Tensor::mark_written() const {
  if (defined()) storage_->mark_written();
}

template <class T>
T* Tensor::data() const {
  check(dtype_ == dtype_of<T>, "tensor: elements are ", dtype_, ", read as ", dtype_of<T>);
  return static_cast<T*>(raw_data());
}

double Tensor::item() const {
  check(numel() == 1, "item: tensor of shape ", shape_, " has ", numel(), " elements, expected 1");
  return to_vector<double>().front();
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const Tensor plain = to(Device{}).to(MemoryFormat::row_major).to(dtype_of<T>);
  const auto elements = plain.span<T>();
  return {elements.begin(), elements.end()};
}

Tensor Tensor::reshape(std::span<const int64_t> extents) const {
  std::vector<int64_t> wanted(extents.begin(), extents.end());
  const auto open = std::ranges::find(wanted, -1);
  if (open != wanted.end()) {
    *open = 1;
    const int64_t known = Shape(wanted).numel();
    check(known != 0 && numel() % known == 0, "reshape: ", shape_, " has ", numel(),
          " elements, which do not divide by ", known);
    *open = numel() / known;
  }
  const Shape shape(wanted);
  check(shape.numel() == numel(), "reshape: ", shape_, " has ", numel(), " elements, ", shape, " has ", shape.numel());
  if (shape == shape_) return *this;
  check(format_ == MemoryFormat::row_major, "reshape: ", shape_, " is ", format_, "; convert to row_major first");
  return {storage_, byte_offset_, shape, dtype_, format_};
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  check(rank() > 0 && 0 <= begin && begin <= end && end <= size(0), "slice: rows ", begin, " to ", end, " of shape ",
        shape_, ", expected a range within its first dimension");
  Shape shape = shape_;
  shape[0] = end - begin;
  const size_t row_bytes = static_cast<size_t>(shape_.numel_from(1)) * size_of(dtype_);
  return {storage_, byte_offset_ + static_cast<size_t>(begin) * row_bytes, shape, dtype_, format_};
}

Tensor Tensor::view(size_t offset, const Shape& shape, DType dtype, MemoryFormat format) const {
  const Tensor seen(storage_, byte_offset_ + offset, shape, dtype, format);
  const bool fits = offset <= bytes() && seen.bytes() <= bytes() - offset;
  check(dtype_ == DType::u8 && fits && seen.byte_offset_ % size_of(dtype) == 0, "view: ", shape, " of ", dtype,
        " at byte ", offset, " of ", shape_, " of ", dtype_, ", which begins at byte ", byte_offset_,
        " of its storage, expected an aligned place in u8 that holds it");
  return seen;
}

Tensor Tensor::clone() const {
  Tensor copy = empty_like(*this);
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor copy = empty(shape_, {dtype, device(), format_});
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(Device target) const {
  if (target == device()) return *this;
  Tensor copy = empty(shape_, {dtype_, target, format_});
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(MemoryFormat format) const {
  if (format == format_) return *this;
  if (rank() == 4 && (size(1) == 1 || size(2) * size(3) == 1)) {  // both formats have one order
    Tensor view = *this;
    view.format_ = format;
    return view;
  }
  Tensor copy = empty(shape_, {dtype_, device(), format});
  copy.copy_from(*this);
  return copy;
}

void Tensor::check_on_cpu() const {
  check(on_cpu(*this), "elements of a tensor on ", device(), " are not in the memory of the CPU; copy it by `to`");
}

void Tensor::copy_from(const Tensor& source) const {
  check(source.shape_ == shape_, "copy: source has shape ", source.shape_, ", target ", shape_);
  mark_written();
  if (source.dtype_ == dtype_ && source.format_ == format_) {
    if (source.storage_ == storage_ && source.byte_offset_ == byte_offset_) return;
    const Device here = device(), there = source.device();
    auto& backend = device_backend(here.type == DeviceType::cpu ? there : here);
    backend.copy(raw_data(), here, source.raw_data(), there, bytes());
    return;
  }
  // The dtype or the format differs, so the copy converts on the CPU. kernels::convert does the same on the device.
  if (!on_cpu(source)) return copy_from(source.to(Device{}));
  if (!on_cpu(*this)) {
    const Tensor converted = empty(shape_, {dtype_, Device{}, format_});
    converted.copy_from(source);
    return copy_from(converted);
  }
  if (source.format_ != format_ && source.dtype_ != dtype_) {
    copy_from(source.to(dtype_));
  } else if (source.format_ != format_) {
    visit_dtype(dtype_, [&]<class T>(T) { permute<T>(source, *this); });
  } else {
    visit_dtype(source.dtype_, [&]<class From>(From) {
      visit_dtype(dtype_, [&]<class To>(To) { convert(source.data<From>(), data<To>(), numel()); });
    });
  }
}

void Tensor::fill(double value) const {
  if (!on_cpu(*this)) return copy_from(full(shape_, value, {dtype_, Device{}, format_}));
  mark_written();
  visit_dtype(dtype_, [&]<class T>(T) { std::ranges::fill(span<T>(), static_cast<T>(value)); });
}

Strides4 strides4(const Tensor& tensor) {
  check(tensor.rank() == 4, "tensor: shape ", tensor.shape(), ", expected 4 dimensions N, C, H, W");
  const int64_t c = tensor.size(1), h = tensor.size(2), w = tensor.size(3);
  if (tensor.format() == MemoryFormat::channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

#define TERN_INSTANTIATE(T)                                       \
  template Tensor Tensor::from(const Shape&, std::span<const T>); \
  template T* Tensor::data() const;                               \
  template std::vector<T> Tensor::to_vector() const;
TERN_INSTANTIATE(float)
TERN_INSTANTIATE(double)
TERN_INSTANTIATE(BFloat16)
TERN_INSTANTIATE(int64_t)
TERN_INSTANTIATE(uint8_t)
#undef TERN_INSTANTIATE

}  // namespace tern
