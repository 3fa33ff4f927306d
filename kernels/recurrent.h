#pragma once

#include "tern/kernels/kernel.h"

// The elementwise part of a step of an LSTM (Hochreiter and Schmidhuber, 1997; Gers, Schraudolph and Cummins, 2000).

namespace tern::kernels {

/// One step for N sequences of H cells. a = input + recurrent, [N, 4·H], holds the sums into the gates i, f, g and o,
/// in this order as in PyTorch. i = σ(a_i + p_i·c_before), f = σ(a_f + p_f·c_before), g = tanh(a_g), c = f·c_before +
/// i·g, o = σ(a_o + p_o·c), h = o·tanh(c). The peepholes p are [3, H], for i, f and o, of `parameter_dtype`; they are 0
/// if undefined. `gates` [N, 4·H] receives i, f, g and o for the backward. c_before, c and h: [N, H].
inline constinit Kernel<void(const Tensor& input, const Tensor& recurrent, const Tensor& c_before,
                             const Tensor& peepholes, Tensor& gates, Tensor& c, Tensor& h)>
    lstm_cell{"lstm_cell"};

/// What the backward of `lstm_cell` reads of its forward.
struct LstmCellSaved {
  Tensor gates, c_before, c, peepholes;
};
/// dc, [N, H], is the gradient by c from the next step. da [N, 4·H] is the gradient by a. dc_before: [N, H].
inline constinit Kernel<void(const Tensor& dh, const Tensor& dc, const LstmCellSaved&, Tensor& da, Tensor& dc_before)>
    lstm_cell_backward{"lstm_cell_backward"};

}  // namespace tern::kernels
