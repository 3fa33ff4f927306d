#include "tern/kernels/cuda/layout.h"

#include <utility>

#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/transpose.h"

namespace tern::cuda {
namespace {

struct Move {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

/// Calls `function(T{})` with an integer of the dtype's size: elements that only move need no other type.
template <class Function>
void visit_size(DType dtype, Function&& function) {
  switch (size_of(dtype)) {
    case 1: return function(uint8_t{});
    case 2: return function(uint16_t{});
    case 4: return function(uint32_t{});
    default: return function(uint64_t{});
  }
}

kernels::Strides own_strides(const Tensor& tensor) { return kernels::strides_in(tensor, tensor.shape()); }

/// Where a block of a tensor begins, and its strides.
struct Place {
  kernels::Strides strides;
  int64_t origin = 0;
};

Place block_of(const Tensor& whole, const kernels::Offsets& offsets) {
  Place place{own_strides(whole)};
  for (int d = 0; d < whole.rank(); ++d) place.origin += offsets[d] * place.strides[d];
  return place;
}

void copy_block(const char* operation, const Tensor& x, const Place& from, const Tensor& y, const Place& to,
                const Shape& shape) {
  check(x.dtype() == y.dtype(), operation, ": elements are ", x.dtype(), " and ", y.dtype(), ", expected one dtype");
  if (shape.numel() == 0) return;
  const kernels::LoopNest<2> nest(shape, kernels::storage_order(y), {to.strides, from.strides});
  const Walk<2> walk(nest, operation);
  visit_size(x.dtype(), [&]<class T>(T) {
    map_walk(operation, y.device(), walk, Move{}, static_cast<T*>(y.raw_data()) + to.origin,
             static_cast<const T*>(x.raw_data()) + from.origin);
  });
}

}  // namespace

void transpose(const Tensor& x, int first, int second, Tensor& y) {
  const int a = x.shape().normalize(first), b = x.shape().normalize(second);
  if (a != b && std::min(a, b) == x.rank() - 2 && x.numel() != 0)
    return visit_size(x.dtype(), [&]<class T>(T) {
      const int64_t rows = x.size(-2), columns = x.size(-1);
      transpose_matrices("transpose", x.device(), static_cast<const T*>(x.raw_data()),
                         {x.numel() / (rows * columns), rows, columns}, static_cast<T*>(y.raw_data()));
    });
  Place from{own_strides(x)};
  std::swap(from.strides[a], from.strides[b]);
  copy_block("transpose", x, from, y, {own_strides(y)}, y.shape());
}

void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  copy_block("extract", x, block_of(x, offsets), y, {own_strides(y)}, y.shape());
}

void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  copy_block("insert", x, {own_strides(x)}, y, block_of(y, offsets), x.shape());
}

}  // namespace tern::cuda
