#include "tern/kernels/recurrent.h"

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

__device__ float sigmoid_of(float x) { return 1 / (1 + expf(-x)); }

/// The peepholes as the argument of a kernel. A plain value.
struct Peepholes {
  explicit Peepholes(const Tensor& peepholes, int64_t of)
      : data(peepholes.defined() ? peepholes.data<float>() : nullptr), cells(of) {}
  __device__ float at(int64_t gate, int64_t j) const { return data != nullptr ? data[gate * cells + j] : 0; }

  const float* data;
  int64_t cells;
};

template <class T>
__global__ void cell_kernel(const T* input, const T* recurrent, const T* c_before, Peepholes peepholes, int64_t count,
                            T* gates, T* c, T* h) {
  const int64_t cells = peepholes.cells;
  for (int64_t at = global_thread(); at < count; at += global_threads()) {
    const int64_t n = at / cells, j = at - n * cells, gate = n * 4 * cells + j;
    const auto sum = [&](int64_t k) { return float(input[gate + k * cells]) + float(recurrent[gate + k * cells]); };
    const float before = float(c_before[at]);
    const float i = sigmoid_of(sum(0) + peepholes.at(0, j) * before),
                f = sigmoid_of(sum(1) + peepholes.at(1, j) * before), g = tanhf(sum(2)), now = f * before + i * g,
                o = sigmoid_of(sum(3) + peepholes.at(2, j) * now);
    gates[gate] = static_cast<T>(i);
    gates[gate + cells] = static_cast<T>(f);
    gates[gate + 2 * cells] = static_cast<T>(g);
    gates[gate + 3 * cells] = static_cast<T>(o);
    c[at] = static_cast<T>(now);
    h[at] = static_cast<T>(o * tanhf(now));
  }
}

template <class T>
__global__ void cell_backward_kernel(const T* dh, const T* dc, const T* gates, const T* c_before, const T* c,
                                     Peepholes peepholes, int64_t count, T* da, T* dc_before) {
  const int64_t cells = peepholes.cells;
  for (int64_t at = global_thread(); at < count; at += global_threads()) {
    const int64_t n = at / cells, j = at - n * cells, gate = n * 4 * cells + j;
    const float i = float(gates[gate]), f = float(gates[gate + cells]), g = float(gates[gate + 2 * cells]),
                o = float(gates[gate + 3 * cells]), t = tanhf(float(c[at])), dy = float(dh[at]);
    const float d_o = dy * t * o * (1 - o);
    const float d_c = float(dc[at]) + dy * o * (1 - t * t) + d_o * peepholes.at(2, j);
    const float d_i = d_c * g * i * (1 - i), d_f = d_c * float(c_before[at]) * f * (1 - f);
    da[gate] = static_cast<T>(d_i);
    da[gate + cells] = static_cast<T>(d_f);
    da[gate + 2 * cells] = static_cast<T>(d_c * i * (1 - g * g));
    da[gate + 3 * cells] = static_cast<T>(d_o);
    dc_before[at] = static_cast<T>(d_c * f + d_i * peepholes.at(0, j) + d_f * peepholes.at(1, j));
  }
}

void lstm_cell(const Tensor& input, const Tensor& recurrent, const Tensor& c_before, const Tensor& peepholes,
               Tensor& gates, Tensor& c, Tensor& h) {
  visit_fast(input.dtype(), "lstm_cell", [&]<class T>(T) {
    launch("lstm_cell", input.device(), grid_over(c.numel()), cell_kernel<T>, static_cast<const T*>(input.data<T>()),
           static_cast<const T*>(recurrent.data<T>()), static_cast<const T*>(c_before.data<T>()),
           Peepholes(peepholes, c.size(1)), c.numel(), gates.data<T>(), c.data<T>(), h.data<T>());
  });
}

void lstm_cell_backward(const Tensor& dh, const Tensor& dc, const kernels::LstmCellSaved& saved, Tensor& da,
                        Tensor& dc_before) {
  visit_fast(dh.dtype(), "lstm_cell_backward", [&]<class T>(T) {
    const auto in = [](const Tensor& tensor) { return static_cast<const T*>(tensor.data<T>()); };
    launch("lstm_cell_backward", dh.device(), grid_over(dh.numel()), cell_backward_kernel<T>, in(dh), in(dc),
           in(saved.gates), in(saved.c_before), in(saved.c), Peepholes(saved.peepholes, dh.size(1)), dh.numel(),
           da.data<T>(), dc_before.data<T>());
  });
}

}  // namespace

void provide_recurrent() {
  kernels::lstm_cell.provide(Target::cuda, lstm_cell);
  kernels::lstm_cell_backward.provide(Target::cuda, lstm_cell_backward);
}

}  // namespace tern::cuda
