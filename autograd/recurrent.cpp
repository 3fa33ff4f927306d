#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/recurrent.h"

namespace tern {
namespace {

/// Step t of a tensor [T, N, ...], which shares its storage: [N, ...].
Tensor step_of(const Tensor& steps, int64_t t) {
  return steps.slice(t, t + 1).reshape(Shape(std::span(steps.shape().begin() + 1, steps.shape().end())));
}
/// Steps [first, last) of a tensor [T, N, K] as rows [(last - first)·N, K].
Tensor rows_of(const Tensor& steps, int64_t first, int64_t last) {
  return steps.slice(first, last).reshape({(last - first) * steps.size(1), steps.size(2)});
}

/// A layer of an LSTM over all steps. With a mask, the states of a sequence stay as they are after its end.
struct LstmLayer {
  Saved mask;  // u8 [T, N, 1], or undefined
  Saved x = {}, input_weight = {}, recurrent_weight = {}, projection = {}, peepholes = {};
  Saved gates = {};   // [T, N, 4·H]
  Saved hidden = {};  // [T, N, H], with a projection
  Saved states = {};  // [T + 1, N, R]: the first is the initial one
  Saved cells = {};   // [T + 1, N, H]
  bool masked = false, projected = false;

  static std::string name() { return "lstm"; }

  std::array<Tensor, 3> forward(const Tensor& input, const Tensor& w_input, const Tensor& w_recurrent,
                                const Tensor& bias, const Tensor& w_projection, const Tensor& holes,
                                const Tensor& state, const Tensor& cell) {
    projected = w_projection.defined();
    const int64_t steps = input.size(0), batch = input.size(1), width = cell.size(1), outputs = state.size(1);
    const TensorOptions options{input.dtype(), input.device()};
    Tensor all_gates = Tensor::empty({steps, batch, 4 * width}, options);
    Tensor all_states = Tensor::empty({steps + 1, batch, outputs}, options),
           all_cells = Tensor::empty({steps + 1, batch, width}, options);
    const Tensor all_hidden = projected ? Tensor::empty({steps, batch, width}, options) : Tensor();
    x = input;
    if (masked) {  // what lies behind a sequence's end may be anything, and 0 · NaN is NaN
      Tensor read = Tensor::empty(input.shape(), options);
      kernels::select(input, filled({}, 0, options), mask, read);
      x = read;
    }
    const auto copy = [](const Tensor& from, Tensor to) { kernels::convert(from, to); };
    copy(state, step_of(all_states, 0));
    copy(cell, step_of(all_cells, 0));
    Tensor sums = Tensor::empty({steps * batch, 4 * width}, options),
           again = Tensor::empty({batch, 4 * width}, options);
    kernels::linear(rows_of(x, 0, steps), w_input, bias, false, sums);
    sums = sums.reshape({steps, batch, 4 * width});
    for (int64_t t = 0; t < steps; ++t) {
      Tensor gate = step_of(all_gates, t), next = step_of(all_states, t + 1), next_cell = step_of(all_cells, t + 1);
      Tensor h = projected ? step_of(all_hidden, t) : next;
      kernels::linear(step_of(all_states, t), w_recurrent, {}, false, again);
      kernels::lstm_cell(step_of(sums, t), again, step_of(all_cells, t), holes, gate, next_cell, h);
      if (projected) kernels::linear(h, w_projection, {}, false, next);
      if (masked) {
        const Tensor goes_on = step_of(mask, t);
        kernels::select(next, step_of(all_states, t), goes_on, next);
        kernels::select(next_cell, step_of(all_cells, t), goes_on, next_cell);
      }
    }
    Tensor y = all_states.slice(1, steps + 1);
    if (masked) {
      y = Tensor::empty(y.shape(), options);
      kernels::select(all_states.slice(1, steps + 1), filled({}, 0, options), mask, y);
    }
    input_weight = w_input;
    recurrent_weight = w_recurrent;
    projection = w_projection;
    peepholes = holes;
    gates = all_gates;
    hidden = all_hidden;
    states = all_states;
    cells = all_cells;
    return {y, step_of(all_states, steps), step_of(all_cells, steps)};
  }

  Gradients backward(const Gradients& dys, const Needs& needs) const {
    const int64_t steps = x.size(0), batch = x.size(1), width = cells.size(2);
    const TensorOptions options{x.dtype(), x.options().device};
    Tensor d_state = dys[1].defined() ? dys[1] : filled({batch, states.size(2)}, 0, options);
    Tensor d_cell = dys[2].defined() ? dys[2] : filled({batch, width}, 0, options);
    Tensor d_sums = Tensor::empty({steps, batch, 4 * width}, options);
    const Tensor d_projected = projected ? Tensor::empty({steps, batch, states.size(2)}, options) : Tensor();
    const Tensor nothing = filled({}, 0, options);
    for (int64_t t = steps; t-- > 0;) {
      // The gradients by the states after this step: of sequences that go on, and of those that have ended.
      Tensor d_output = dys[0].defined() ? step_of(dys[0], t) : nothing;
      Tensor d_next = Tensor::empty(d_state.shape(), options), ended, ended_cell;
      if (masked) {
        const Tensor goes_on = step_of(mask, t);
        ended = Tensor::empty(d_state.shape(), options);
        ended_cell = Tensor::empty(d_cell.shape(), options);
        kernels::select(nothing, d_state, goes_on, ended);
        kernels::select(nothing, d_cell, goes_on, ended_cell);
        kernels::add(d_state, d_output, d_next);
        kernels::select(d_next, nothing, goes_on, d_next);
        Tensor own = Tensor::empty(d_cell.shape(), options);
        kernels::select(d_cell, nothing, goes_on, own);
        d_cell = own;
      } else {
        kernels::add(d_state, d_output, d_next);
      }
      Tensor d_hidden = d_next;
      if (projected) {
        Tensor to = step_of(d_projected, t);
        kernels::convert(d_next, to);
        d_hidden = Tensor::empty({batch, width}, options);
        kernels::linear_backward_data(d_next, projection, d_hidden);
      }
      Tensor d_sum = step_of(d_sums, t), d_before = Tensor::empty({batch, width}, options);
      kernels::lstm_cell_backward(
          d_hidden, d_cell, {step_of(gates, t), step_of(cells, t), step_of(cells, t + 1), peepholes}, d_sum, d_before);
      Tensor d_previous = Tensor::empty(d_state.shape(), options);
      kernels::linear_backward_data(d_sum, recurrent_weight, d_previous);
      if (masked) {
        kernels::accumulate(ended, d_previous);
        kernels::accumulate(ended_cell, d_before);
      }
      d_state = d_previous;
      d_cell = d_before;
    }
    return gradients_of(d_sums, d_projected, d_state, d_cell, needs);
  }

  Gradients gradients_of(const Tensor& d_sums, const Tensor& d_projected, const Tensor& d_state, const Tensor& d_cell,
                         const Needs& needs) const {
    const int64_t steps = x.size(0);
    const Tensor rows = rows_of(d_sums, 0, steps);
    Gradients gradients(8);
    if (needs[0]) {
      gradients[0] = Tensor::empty({rows.size(0), x.size(2)}, {x.dtype(), x.options().device});
      kernels::linear_backward_data(rows, input_weight, gradients[0]);
      gradients[0] = gradients[0].reshape(x.shape());
    }
    if (needs[1] || needs[3]) {
      gradients[1] = input_weight.empty_like();
      if (needs[3]) gradients[3] = Tensor::empty({rows.size(1)}, input_weight.options());
      kernels::linear_backward_weights(rows, rows_of(x, 0, steps), gradients[1], gradients[3]);
    }
    Tensor no_bias;
    if (needs[2]) {
      gradients[2] = recurrent_weight.empty_like();
      kernels::linear_backward_weights(rows, rows_of(states, 0, steps), gradients[2], no_bias);
    }
    if (needs[4]) {
      gradients[4] = projection.empty_like();
      kernels::linear_backward_weights(rows_of(d_projected, 0, steps), rows_of(hidden, 0, steps), gradients[4],
                                       no_bias);
    }
    if (needs[5]) gradients[5] = peephole_gradient(rows);
    gradients[6] = d_state;
    gradients[7] = d_cell;
    return gradients;
  }

  /// The sums over all steps and sequences of the gradients of the gates i, f and o, times the cells that they see.
  Tensor peephole_gradient(const Tensor& rows) const {
    const NoGradient no_gradient;
    const int64_t steps = x.size(0), width = cells.size(2);
    const DType wide = parameter_dtype(x.dtype());
    const auto of = [&](int64_t gate, int64_t first_cell) {
      const Variable d = slice(Variable(rows), 1, gate * width, (gate + 1) * width);
      return sum(convert(d, wide) * convert(Variable(rows_of(cells, first_cell, first_cell + steps)), wide), {0});
    };
    return stack({of(0, 0), of(1, 0), of(3, 1)}, 0).value();
  }
};

/// u8 [T, N, 1]: whether step t belongs to sequence n.
Tensor mask_of(const Tensor& lengths, int64_t steps, int64_t batch, Device device) {
  check(lengths.shape() == Shape{batch} && lengths.dtype() == DType::i64, "lstm: lengths ", lengths.dtype(),
        " of shape ", lengths.shape(), ", expected i64 of shape [", batch, "]");
  const std::vector<int64_t> values = lengths.to_vector<int64_t>();
  std::vector<uint8_t> goes_on;
  for (int64_t t = 0; t < steps; ++t)
    for (size_t n = 0; n < values.size(); ++n) {
      check(values[n] >= 0 && values[n] <= steps, "lstm: sequence ", n, " has length ", values[n], ", expected 0 to ",
            steps);
      goes_on.push_back(t < values[n]);
    }
  return Tensor::from({steps, batch, 1}, goes_on).to(device);
}

}  // namespace

LstmOutput lstm(const Variable& x, const LstmWeights& weights, const LstmState& initial, const Tensor& lengths) {
  const Shape &shape = x.shape(), &input = weights.input.shape(), &recurrent = weights.recurrent.shape();
  const bool fits = shape.rank() == 3 && input.rank() == 2 && recurrent.rank() == 2 && input[0] % 4 == 0 &&
                    input[1] == shape[2] && recurrent[0] == input[0];
  check(fits, "lstm: input of shape ", shape, ", weights of shapes ", input, " and ", recurrent,
        ", expected [T, N, I], [4·H, I] and [4·H, R]");
  const int64_t steps = shape[0], batch = shape[1], width = input[0] / 4, outputs = recurrent[1];
  const DType dtype = x.value().dtype(), weight_dtype = parameter_dtype(dtype);
  check(is_floating(dtype), "lstm: input is ", dtype, ", expected f32, f64 or bf16");
  const auto check_dtype = [&](const char* what, const Variable& found, DType expected) {
    check(!found.defined() || found.value().dtype() == expected, "lstm: ", what, " is ", found.value().dtype(),
          " beside input of ", dtype, ", expected ", expected);
  };
  const auto check_fits = [&](const char* what, const Variable& found, const Shape& expected, DType type) {
    check(!found.defined() || found.shape() == expected, "lstm: ", what, " of shape ", found.shape(), ", expected ",
          expected);
    check_dtype(what, found, type);
  };
  check_dtype("input weight", weights.input, weight_dtype);
  check_dtype("recurrent weight", weights.recurrent, weight_dtype);
  const bool projected = weights.projection.value().defined();
  check(projected || outputs == width, "lstm: recurrent weight of shape ", recurrent, ", expected [", 4 * width, ", ",
        width, "] without a projection");
  check_fits("bias", weights.bias, {4 * width}, weight_dtype);
  check_fits("projection", weights.projection, {outputs, width}, weight_dtype);
  check_fits("peepholes", weights.peepholes, {3, width}, weight_dtype);
  check_fits("initial hidden state", initial.hidden, {batch, outputs}, dtype);
  check_fits("initial cell", initial.cell, {batch, width}, dtype);
  const auto state = [&](const Variable& given, int64_t extent) {
    return given.value().defined() ? given : expand(number(0, x), {batch, extent});
  };
  LstmLayer layer{.mask = {}};
  layer.masked = lengths.defined();
  if (layer.masked) layer.mask = mask_of(lengths, steps, batch, x.value().device());
  auto [y, hidden, cell] =
      apply(std::move(layer), x, weights.input, weights.recurrent, weights.bias, weights.projection, weights.peepholes,
            state(initial.hidden, outputs), state(initial.cell, width));
  return {y, {hidden, cell}};
}

}  // namespace tern
