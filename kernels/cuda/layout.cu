#include <utility>

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// `count` matrices one after the other, each `rows` × `columns`.
struct Matrices {
  int64_t count, rows, columns;
};

/// The width of the tile that a block transposes, and the number of its rows that the block moves at once.
constexpr int kTransposeTile = 32, kTransposeRows = 8;

/// Transposes tile by tile through shared memory, so that reads and writes are of whole cache lines.
template <class From, class To>
__global__ void transpose_kernel(const From* x, Matrices shape, int64_t tiles_across, int64_t tiles, To* y) {
  alignas(From) __shared__ unsigned char
      bytes[kTransposeTile * (kTransposeTile + 1) * sizeof(From)];  // shared memory has no constructors
  auto* tile = reinterpret_cast<From(*)[kTransposeTile + 1]>(bytes);
  for (int64_t t = blockIdx.x; t < shape.count * tiles; t += gridDim.x) {
    const int64_t matrix = t / tiles, within = t % tiles;
    const int64_t row = within / tiles_across * kTransposeTile, column = within % tiles_across * kTransposeTile;
    const int64_t origin = matrix * shape.rows * shape.columns;
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTransposeTile; r += kTransposeRows)
      if (row + r < shape.rows && column + threadIdx.x < shape.columns)
        tile[r][threadIdx.x] = x[origin + (row + r) * shape.columns + column + threadIdx.x];
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTransposeTile; r += kTransposeRows)
      if (column + r < shape.columns && row + threadIdx.x < shape.rows)
        y[origin + (column + r) * shape.rows + row + threadIdx.x] =
            static_cast<To>(wider_t<From>(tile[threadIdx.x][r]));
  }
}

/// y [count, columns, rows] = x [count, rows, columns], each matrix transposed.
template <class From, class To>
void transpose_matrices(const char* operation, Device device, const From* x, const Matrices& shape, To* y) {
  const int64_t across = (shape.columns + kTransposeTile - 1) / kTransposeTile,
                tiles = across * ((shape.rows + kTransposeTile - 1) / kTransposeTile);
  const int64_t blocks = std::min<int64_t>(shape.count * tiles, 1 << 16);
  launch(operation, device,
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kTransposeTile, kTransposeRows)},
         transpose_kernel<From, To>, x, shape, across, tiles, y);
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Constant {
  float value;
  __device__ float operator()() const { return value; }
};

/// As `visit_fast`, for f32, bf16 and also u8, the dtype of pixels. Returns false for any other dtype.
template <class Function>
bool visit_readable(DType dtype, Function&& function) {
  if (dtype == DType::u8) return function(uint8_t{}), true;
  if (dtype == DType::f32) return function(float{}), true;
  if (dtype == DType::bf16) return function(BFloat16{}), true;
  return false;
}

template <class From, class To>
void convert_elements(const Tensor& x, const Tensor& y) {
  const From* in = x.data<From>();
  To* out = y.data<To>();
  if (x.format() != y.format()) {
    const bool to_last = y.format() == MemoryFormat::channels_last;
    const int64_t channels = x.size(1), pixels = x.size(2) * x.size(3);
    return transpose_matrices("convert", x.device(), in,
                              {x.size(0), to_last ? channels : pixels, to_last ? pixels : channels}, out);
  }
  const Shape flat{x.numel()};
  kernels::Strides dense{};
  dense[0] = x.numel() == 1 ? 0 : 1;
  const kernels::LoopNest<2> nest(flat, {0, 1, 2, 3, 4, 5}, {dense, dense});
  map_walk("convert", x.device(), Walk<2>(nest, "convert"), Same{}, out, in);
}

__global__ void fill_kernel(double* x, int64_t count, double value) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) x[i] = value;
}

void convert(const Tensor& x, Tensor& y) {
  check(x.shape() == y.shape(), "convert: ", x.shape(), " into ", y.shape(), ", expected one shape");
  if (x.numel() == 0 || (x.dtype() == y.dtype() && x.format() == y.format())) return y.copy_from(x);
  if (y.dtype() != DType::f32 && y.dtype() != DType::bf16) return y.copy_from(x);
  const bool converted = visit_readable(x.dtype(), [&]<class From>(From) {
    visit_fast(y.dtype(), "convert", [&]<class To>(To) { convert_elements<From, To>(x, y); });
  });
  if (!converted) y.copy_from(x);
}

void fill(Tensor& x, double value) {
  if (x.dtype() == DType::f64)
    return launch("fill", x.device(), grid_over(x.numel()), fill_kernel, x.data<double>(), x.numel(), value);
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16) return x.fill(value);
  map("fill", Constant{static_cast<float>(value)}, x);
}

struct Move {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

/// Calls `function(T{})` with an integer type of the dtype's size. This is enough for elements that are only moved.
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

/// The start of a block in a tensor, and the tensor's strides.
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

}  // namespace

void provide_layout() {
  kernels::convert.provide(Target::cuda, convert);
  kernels::transpose.provide(Target::cuda, transpose);
  kernels::extract.provide(Target::cuda, extract);
  kernels::insert.provide(Target::cuda, insert);
  kernels::fill.provide(Target::cuda, fill);
}

}  // namespace tern::cuda
