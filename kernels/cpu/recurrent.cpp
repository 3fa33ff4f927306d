#include "tern/kernels/recurrent.h"

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

float sigmoid_of(float x) { return 1.0f / (1.0f + exponential(-x)); }
/// Its absolute error is below 3e-7; near 0 digits cancel, so its relative error is large.
float tanh_of(float x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }

/// The peepholes of gates i, f and o, or zeros.
Tensor peepholes_or_zeros(const Tensor& peepholes, int64_t cells) {
  return peepholes.defined() ? peepholes : Tensor::zeros({3, cells});
}

int64_t rows_at_once(int64_t cells) { return std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(1, cells)); }

void lstm_cell(const Tensor& input, const Tensor& recurrent, const Tensor& c_before, const Tensor& peepholes,
               Tensor& gates, Tensor& c, Tensor& h) {
  const int64_t cells = c.size(1);
  const Tensor holes = peepholes_or_zeros(peepholes, cells);
  const float *hole_i = holes.data<float>(), *hole_f = hole_i + cells, *hole_o = hole_f + cells;
  visit_fast(input.dtype(), "lstm_cell", [&]<class T>(T) {
    const T *in = input.data<T>(), *again = recurrent.data<T>(), *before = c_before.data<T>();
    T *gate = gates.data<T>(), *now = c.data<T>(), *out = h.data<T>();
    parallel_vectorized(c.size(0), rows_at_once(cells), [=](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const T *a = in + n * 4 * cells, *b = again + n * 4 * cells;
        T* g = gate + n * 4 * cells;
#pragma omp simd
        for (int64_t j = 0; j < cells; ++j) {
          const float old = load(before + n * cells + j);
          const float i = sigmoid_of(load(a + j) + load(b + j) + hole_i[j] * old);
          const float f = sigmoid_of(load(a + cells + j) + load(b + cells + j) + hole_f[j] * old);
          const float v = tanh_of(load(a + 2 * cells + j) + load(b + 2 * cells + j));
          const float state = f * old + i * v;
          const float o = sigmoid_of(load(a + 3 * cells + j) + load(b + 3 * cells + j) + hole_o[j] * state);
          store(g + j, i);
          store(g + cells + j, f);
          store(g + 2 * cells + j, v);
          store(g + 3 * cells + j, o);
          store(now + n * cells + j, state);
          store(out + n * cells + j, o * tanh_of(state));
        }
      }
    });
  });
}

void lstm_cell_backward(const Tensor& dh, const Tensor& dc, const kernels::LstmCellSaved& saved, Tensor& da,
                        Tensor& dc_before) {
  const int64_t cells = dh.size(1);
  const Tensor holes = peepholes_or_zeros(saved.peepholes, cells);
  const float *hole_i = holes.data<float>(), *hole_f = hole_i + cells, *hole_o = hole_f + cells;
  visit_fast(dh.dtype(), "lstm_cell_backward", [&]<class T>(T) {
    const T *gates = saved.gates.data<T>(), *before = saved.c_before.data<T>(), *now = saved.c.data<T>(),
            *d_out = dh.data<T>(), *d_next = dc.data<T>();
    T *to = da.data<T>(), *d_before = dc_before.data<T>();
    parallel_vectorized(dh.size(0), rows_at_once(cells), [=](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const T* gate = gates + n * 4 * cells;
        T* d = to + n * 4 * cells;
#pragma omp simd
        for (int64_t j = 0; j < cells; ++j) {
          const int64_t at = n * cells + j;
          const float i = load(gate + j), f = load(gate + cells + j), v = load(gate + 2 * cells + j),
                      o = load(gate + 3 * cells + j);
          const float t = tanh_of(load(now + at)), dy = load(d_out + at);
          const float d_o = dy * t * o * (1.0f - o);
          const float d_c = load(d_next + at) + dy * o * (1.0f - t * t) + d_o * hole_o[j];
          const float d_i = d_c * v * i * (1.0f - i), d_f = d_c * load(before + at) * f * (1.0f - f);
          store(d + j, d_i);
          store(d + cells + j, d_f);
          store(d + 2 * cells + j, d_c * i * (1.0f - v * v));
          store(d + 3 * cells + j, d_o);
          store(d_before + at, d_c * f + d_i * hole_i[j] + d_f * hole_f[j]);
        }
      }
    });
  });
}

}  // namespace

void provide_recurrent() {
  kernels::lstm_cell.provide(Target::cpu, lstm_cell);
  kernels::lstm_cell_backward.provide(Target::cpu, lstm_cell_backward);
}

}  // namespace tern::cpu
