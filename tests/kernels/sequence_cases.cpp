#include <limits>

#include "tern/kernels/attention.h"
#include "tern/kernels/ctc.h"
#include "tern/kernels/recurrent.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct LstmCase {
  int64_t batch, cells;
  bool peepholes;
};
const LstmCase kLstmCases[] = {{1, 1, true}, {3, 5, false}, {5, 33, true}, {16, 200, true}, {0, 4, false}};

struct AttentionCase {
  int64_t batch, queries, keys, depth, width;
  bool causal = false;
};
// Small, because the emulation of a GPU computes each pair of a query and a key in a millisecond.
const AttentionCase kAttentionCases[] = {
    {1, 1, 1, 1, 1},       {2, 5, 7, 3, 4},           {1, 65, 9, 33, 9},     {1, 2, 3, 256, 200},
    {2, 5, 5, 3, 4, true}, {1, 65, 12, 40, 40, true}, {1, 8, 5, 8, 8, true}, {1, 5, 8, 8, 64, true},
    {0, 3, 3, 2, 2},       {2, 0, 3, 2, 2},
};

struct CtcCase {
  int64_t frames, classes, labels;
  std::vector<int64_t> input_lengths, label_lengths;
  uint32_t kinds = 0;  ///< of labels; all but the blank if 0
  bool zero_infinity = false;
};
const CtcCase kCtcCases[] = {
    {1, 2, 1, {1}, {1}},
    {12, 5, 4, {12, 9, 7}, {4, 0, 3}},
    {9, 3, 4, {9, 8, 7, 6, 0}, {4, 4, 4, 4, 0}, 1},  // labels that are all equal; the last two have no path, and no end
    {3, 4, 3, {2, 3}, {3, 3}, 0, true},
    {40, 33, 15, {40, 31}, {15, 12}},
    {60, 9, 10, {60, 5}, {10, 0}},
    {5, 4, 0, {5}, {0}},
};

void add_lstm_case(ParityTable& table, const LstmCase& c) {
  using namespace kernels;
  const Shape cells{c.batch, c.cells}, gates{c.batch, 4 * c.cells};
  const std::string name = to_string(cells) + (c.peepholes ? " peepholes" : "");
  table.push_back({&lstm_cell, name, [=](Run& run) {
                     const Tensor input = run.input(gates, -2, 2), recurrent = run.input(gates, -2, 2),
                                  before = run.input(cells), peepholes = run.parameter({3, c.cells});
                     run(lstm_cell, input, recurrent, before, c.peepholes ? peepholes : Tensor(), run.output(gates),
                         run.output(cells), run.output(cells));
                   }});
  table.push_back({&lstm_cell_backward, name, [=](Run& run) {
                     const Tensor dh = run.input(cells), dc = run.input(cells), peepholes = run.parameter({3, c.cells});
                     const LstmCellSaved saved{run.input(gates, 0, 1), run.input(cells), run.input(cells),
                                               c.peepholes ? peepholes : Tensor()};
                     run(lstm_cell_backward, dh, dc, saved, run.output(gates), run.output(cells));
                   }});
}

void add_attention_case(ParityTable& table, const AttentionCase& c) {
  using namespace kernels;
  const Shape queries{c.batch, c.queries, c.depth}, keys{c.batch, c.keys, c.depth}, values{c.batch, c.keys, c.width},
      outputs{c.batch, c.queries, c.width}, sums{c.batch, c.queries};
  const std::string name = to_string(queries) + " over " + to_string(values) + (c.causal ? " causal" : "");
  const AttentionOptions options{.scale = 0.7, .causal = c.causal};
  table.push_back({&attention, name, [=](Run& run) {
                     const Tensor q = run.input(queries, -2, 2), k = run.input(keys, -2, 2), v = run.input(values);
                     run(attention, q, k, v, options, run.output(outputs), run.parameter_output(sums));
                   }});
  table.push_back({&attention_backward, name, [=](Run& run) {
                     const Tensor dy = run.input(outputs), q = run.input(queries, -2, 2), k = run.input(keys, -2, 2),
                                  v = run.input(values);
                     const AttentionSaved saved{q, k, v, run.input(outputs), run.parameter(sums, 3, 5)};
                     run(attention_backward, dy, saved, options, run.output(queries), run.output(keys),
                         run.output(values));
                   }});
}

void add_ctc_case(ParityTable& table, const CtcCase& c) {
  const auto batch = std::ssize(c.input_lengths);
  const std::string name =
      join({c.frames, " frames, ", batch, " sequences, ", c.labels, " labels", c.zero_infinity ? ", zeros" : ""});
  table.push_back({&kernels::ctc_loss,
                   name,
                   [=](Run& run) {
                     const auto blank = static_cast<uint32_t>(c.classes - 1);
                     const Shape shape{c.frames, batch, c.classes};
                     const Tensor log_probabilities = run.input(shape, -6, 0);
                     const auto lengths = [&](const std::vector<int64_t>& values) {
                       return Tensor::from({batch}, values).to(run.device());
                     };
                     const kernels::CtcTargets targets = {
                         .labels = run.integers({batch, c.labels}, c.kinds == 0 ? blank : c.kinds),
                         .input_lengths = lengths(c.input_lengths),
                         .label_lengths = lengths(c.label_lengths),
                         .blank = blank,
                         .zero_infinity = c.zero_infinity};
                     Tensor& losses = run.parameter_output({batch});
                     run(kernels::ctc_loss, log_probabilities, targets, losses, run.parameter_output(shape));
                   },
                   {.channels_last = false}});
}

}  // namespace

void add_sequence_cases(ParityTable& table) {
  for (const LstmCase& c : kLstmCases) add_lstm_case(table, c);
  for (const AttentionCase& c : kAttentionCases) add_attention_case(table, c);
  table.push_back({&kernels::attention, "a first key of -inf", [](Run& run) {
                     constexpr float kLeast = -std::numeric_limits<float>::infinity();
                     const Tensor q = run.given({1, 1, 1}, {1}), k = run.given({1, 3, 1}, {kLeast, 0.5f, 1}),
                                  v = run.given({1, 3, 1}, {2, 3, 4});
                     run(kernels::attention, q, k, v, kernels::AttentionOptions{.scale = 1}, run.output({1, 1, 1}),
                         run.parameter_output({1, 1}));
                   }});
  for (const CtcCase& c : kCtcCases) add_ctc_case(table, c);
}

}  // namespace tern::test
