#include "tern/kernels/recurrent.h"

#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

template <class T>
T sigmoid_of(T x) {
  return 1 / (1 + std::exp(-x));
}

/// Peephole number `gate` of cell j, or 0.
template <class Wide>
Wide peephole(const Tensor& peepholes, int64_t gate, int64_t cells, int64_t j) {
  return peepholes.defined() ? peepholes.data<Wide>()[gate * cells + j] : Wide(0);
}

void lstm_cell(const Tensor& input, const Tensor& recurrent, const Tensor& c_before, const Tensor& peepholes,
               Tensor& gates, Tensor& c, Tensor& h) {
  const int64_t cells = c.size(1);
  visit_floating(input.dtype(), "lstm_cell", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t n = 0; n < c.size(0); ++n)
      for (int64_t j = 0; j < cells; ++j) {
        const auto sum = [&](int64_t gate) {
          const int64_t at = n * 4 * cells + gate * cells + j;
          return Wide(input.data<T>()[at]) + Wide(recurrent.data<T>()[at]);
        };
        const int64_t at = n * cells + j;
        const Wide before = c_before.data<T>()[at];
        const Wide i = sigmoid_of(sum(0) + peephole<Wide>(peepholes, 0, cells, j) * before),
                   f = sigmoid_of(sum(1) + peephole<Wide>(peepholes, 1, cells, j) * before), g = std::tanh(sum(2));
        const Wide now = f * before + i * g, o = sigmoid_of(sum(3) + peephole<Wide>(peepholes, 2, cells, j) * now);
        T* gate = gates.data<T>() + n * 4 * cells + j;
        gate[0] = static_cast<T>(i);
        gate[cells] = static_cast<T>(f);
        gate[2 * cells] = static_cast<T>(g);
        gate[3 * cells] = static_cast<T>(o);
        c.data<T>()[at] = static_cast<T>(now);
        h.data<T>()[at] = static_cast<T>(o * std::tanh(now));
      }
  });
}

void lstm_cell_backward(const Tensor& dh, const Tensor& dc, const kernels::LstmCellSaved& saved, Tensor& da,
                        Tensor& dc_before) {
  const int64_t cells = dh.size(1);
  visit_floating(dh.dtype(), "lstm_cell_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    for (int64_t n = 0; n < dh.size(0); ++n)
      for (int64_t j = 0; j < cells; ++j) {
        const int64_t at = n * cells + j;
        const T* gate = saved.gates.data<T>() + n * 4 * cells + j;
        const Wide i = gate[0], f = gate[cells], g = gate[2 * cells], o = gate[3 * cells];
        const Wide before = saved.c_before.data<T>()[at], t = std::tanh(Wide(saved.c.data<T>()[at]));
        const Wide d_o = Wide(dh.data<T>()[at]) * t * o * (1 - o);
        const Wide d_c = Wide(dc.data<T>()[at]) + Wide(dh.data<T>()[at]) * o * (1 - t * t) +
                         d_o * peephole<Wide>(saved.peepholes, 2, cells, j);
        const Wide d_i = d_c * g * i * (1 - i), d_f = d_c * before * f * (1 - f), d_g = d_c * i * (1 - g * g);
        T* to = da.data<T>() + n * 4 * cells + j;
        to[0] = static_cast<T>(d_i);
        to[cells] = static_cast<T>(d_f);
        to[2 * cells] = static_cast<T>(d_g);
        to[3 * cells] = static_cast<T>(d_o);
        dc_before.data<T>()[at] = static_cast<T>(d_c * f + d_i * peephole<Wide>(saved.peepholes, 0, cells, j) +
                                                 d_f * peephole<Wide>(saved.peepholes, 1, cells, j));
      }
  });
}

}  // namespace

void provide_recurrent() {
  kernels::lstm_cell.provide(Target::reference, lstm_cell);
  kernels::lstm_cell_backward.provide(Target::reference, lstm_cell_backward);
}

}  // namespace tern::reference
