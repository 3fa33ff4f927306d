#include "tern/kernels/cuda/layout.h"
#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/transpose.h"

namespace tern::cuda {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Constant {
  float value;
  __device__ float operator()() const { return value; }
};

/// As `visit_fast` over f32, bf16 and u8, the dtypes of pixels too; false for any other.
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

}  // namespace

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

}  // namespace tern::cuda
