#include <span>
#include <utility>
#include <vector>

#include "tern/kernels/cuda/item_table.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/operands.h"
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
  map_walk("convert", x.device(), straight<2>("convert", x.numel()), Same{}, out, in);
}

/// One of several conversions. Element i of y is element `source(i)` of x, in storage order. If the formats differ, y
/// is a row of matrices, and x has the same matrices transposed.
struct ConvertedItem {
  static constexpr int64_t kPerBlock = 4096;

  ConvertedItem() = default;
  explicit ConvertedItem(const kernels::Conversion& conversion)
      : x(conversion.x.data<float>()),
        y(conversion.y.raw_data()),
        numel(conversion.y.numel()),
        narrow(conversion.y.dtype() == DType::bf16) {
    if (conversion.x.format() == conversion.y.format()) return;
    const bool to_last = conversion.y.format() == MemoryFormat::channels_last;
    const auto channels = static_cast<uint32_t>(conversion.y.size(1)),
               pixels = static_cast<uint32_t>(conversion.y.size(2) * conversion.y.size(3));
    columns = Divider(to_last ? channels : pixels);
    matrix = Divider(channels * pixels);
    rows = to_last ? pixels : channels;
  }
  __device__ int64_t source(int64_t i) const {
    if (rows == 0) return i;
    const auto n = static_cast<uint32_t>(i), within = matrix.remainder(n), row = columns.quotient(within);
    return int64_t{n} - within + int64_t{within - row * columns.divisor()} * rows + row;
  }

  const float* x = nullptr;
  void* y = nullptr;
  int64_t numel = 0;
  bool narrow = false;  ///< y is bf16
  Divider columns, matrix;
  uint32_t rows = 0;  ///< 0 if the formats are the same
};

__global__ void convert_all_kernel(const __grid_constant__ ItemTable<ConvertedItem> table) {
  const auto place = table.place();
  const ConvertedItem& item = place.entry;
  const int64_t first = place.block * ConvertedItem::kPerBlock,
                last = std::min(first + ConvertedItem::kPerBlock, item.numel);
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads) {
    const float value = item.x[item.source(i)];
    if (item.narrow)
      static_cast<BFloat16*>(item.y)[i] = static_cast<BFloat16>(value);
    else
      static_cast<float*>(item.y)[i] = value;
  }
}

/// C, H and W of y, and the channels of x.
struct FittedShape {
  int64_t channels, rows, columns, own;
};

template <class From, class To>
__global__ void fit_channels_kernel(const From* x, Strides4 from, FittedShape shape, Strides4 to, int64_t count,
                                    To* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t c = i % shape.channels, pixel = i / shape.channels, column = pixel % shape.columns,
                  row = pixel / shape.columns % shape.rows, n = pixel / shape.columns / shape.rows;
    const float value =
        c < shape.own ? static_cast<float>(x[n * from.n + c * from.c + row * from.h + column * from.w]) : 0.0f;
    y[n * to.n + c * to.c + row * to.h + column * to.w] = static_cast<To>(value);
  }
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

void convert_all(std::span<const kernels::Conversion> conversions) {
  std::vector<ConvertedItem> items;
  for (auto [x, y] : conversions) {
    check(x.shape() == y.shape() && x.dtype() == DType::f32 && (y.dtype() == DType::f32 || y.dtype() == DType::bf16),
          "convert_all: ", x.dtype(), " ", x.shape(), " into ", y.dtype(), " ", y.shape(),
          ", expected one shape, and f32 into f32 or bf16");
    if (x.numel() >= int64_t{1} << 31)
      convert(x, y);
    else if (x.numel() > 0)
      items.emplace_back(kernels::Conversion{x, y});
  }
  for_each_table(
      std::span<const ConvertedItem>(items),
      [](const ConvertedItem& item) { return (item.numel + ConvertedItem::kPerBlock - 1) / ConvertedItem::kPerBlock; },
      [&](const auto& table) {
        launch("convert_all", conversions.front().x.device(), table.grid(), convert_all_kernel, table);
      });
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

void permute(const Tensor& x, const kernels::Order& order, Tensor& y) {
  if (kernels::exchanges_last_two(order, x.rank()) && x.numel() != 0)
    return visit_size(x.dtype(), [&]<class T>(T) {
      const int64_t rows = x.size(-2), columns = x.size(-1);
      transpose_matrices("permute", x.device(), static_cast<const T*>(x.raw_data()),
                         {x.numel() / (rows * columns), rows, columns}, static_cast<T*>(y.raw_data()));
    });
  copy_block("permute", x, {kernels::permuted_strides(x, order)}, y, {own_strides(y)}, y.shape());
}

void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  copy_block("extract", x, block_of(x, offsets), y, {own_strides(y)}, y.shape());
}

void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y) {
  copy_block("insert", x, {own_strides(x)}, y, block_of(y, offsets), x.shape());
}

/// The extents of an image and of the same image with a border.
struct Frame {
  int64_t h, w, rows, columns, top, left;
};

template <class T>
__global__ void reflect_kernel(const T* x, Frame frame, int64_t count, T* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t row = i / frame.columns, plane = row / frame.rows;
    const int64_t h = mirrored(row - plane * frame.rows - frame.top, frame.h),
                  w = mirrored(i - row * frame.columns - frame.left, frame.w);
    y[i] = x[(plane * frame.h + h) * frame.w + w];
  }
}

/// The places along one dimension at which element i of `extent` elements is shown, in a row of `padded` elements that
/// begins `before` the first element. Missing ones are -1.
struct Copies {
  int64_t place[3];
  __device__ Copies(int64_t i, int64_t extent, int64_t before, int64_t padded) {
    place[0] = before + i;
    place[1] = i >= 1 && i <= before ? before - i : -1;
    const int64_t after = before + 2 * (extent - 1) - i;
    place[2] = i <= extent - 2 && after < padded ? after : -1;
  }
};

template <class T>
__global__ void reflect_backward_kernel(const T* dy, Frame frame, int64_t count, T* dx) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t row = i / frame.w, plane = row / frame.h;
    const Copies down(row - plane * frame.h, frame.h, frame.top, frame.rows),
        across(i - row * frame.w, frame.w, frame.left, frame.columns);
    float sum = 0;
    for (const int64_t h : down.place)
      for (const int64_t w : across.place)
        if (h >= 0 && w >= 0) sum += float(dy[(plane * frame.rows + h) * frame.columns + w]);
    dx[i] = static_cast<T>(sum);
  }
}

Frame frame_of(const Tensor& image, const Tensor& padded, const kernels::Border& border) {
  return {image.size(-2), image.size(-1), padded.size(-2), padded.size(-1), border.top, border.left};
}

void reflection_pad(const Tensor& x, const kernels::Border& border, Tensor& y) {
  visit_fast(x.dtype(), "reflection_pad", [&]<class T>(T) {
    launch("reflection_pad", x.device(), grid_over(y.numel()), reflect_kernel<T>, static_cast<const T*>(x.data<T>()),
           frame_of(x, y, border), y.numel(), y.data<T>());
  });
}

void reflection_pad_backward(const Tensor& dy, const kernels::Border& border, Tensor& dx) {
  visit_fast(dy.dtype(), "reflection_pad_backward", [&]<class T>(T) {
    launch("reflection_pad_backward", dy.device(), grid_over(dx.numel()), reflect_backward_kernel<T>,
           static_cast<const T*>(dy.data<T>()), frame_of(dx, dy, border), dx.numel(), dx.data<T>());
  });
}

}  // namespace

void fit_channels(const char* operation, const Tensor& x, const Tensor& y) {
  const FittedShape shape{y.size(1), y.size(2), y.size(3), x.size(1)};
  visit_fast(x.dtype(), operation, [&]<class From>(From) {
    visit_fast(y.dtype(), operation, [&]<class To>(To) {
      launch(operation, y.device(), grid_over(y.numel()), fit_channels_kernel<From, To>,
             static_cast<const From*>(x.data<From>()), strides4(x), shape, strides4(y), y.numel(), y.data<To>());
    });
  });
}

void provide_layout() {
  kernels::convert.provide(Target::cuda, convert);
  kernels::convert_all.provide(Target::cuda, convert_all);
  kernels::permute.provide(Target::cuda, permute);
  kernels::extract.provide(Target::cuda, extract);
  kernels::insert.provide(Target::cuda, insert);
  kernels::reflection_pad.provide(Target::cuda, reflection_pad);
  kernels::reflection_pad_backward.provide(Target::cuda, reflection_pad_backward);
  kernels::fill.provide(Target::cuda, fill);
}

}  // namespace tern::cuda
