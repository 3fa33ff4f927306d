#pragma once

#include <vector>

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// Layers of LSTM one above the other, over sequences [T, N, in], as torch.nn.LSTM in one direction. Parameters have
/// its names, such as weight_ih_l0; "weight_peephole_l0" [3, hidden] is tern's. Gives [T, N, projection], or [T, N,
/// hidden] without a projection. First values: uniform in ±range.
class Lstm final : public Layer {
 public:
  struct Options {
    int64_t in = 1, hidden = 1;
    int64_t projection = 0;  ///< PyTorch's proj_size; 0: none
    int64_t layers = 1;
    bool bias = true;
    bool peepholes = false;
    double range = 0;  ///< of the first values; 0: 1/√hidden, as PyTorch's
  };
  explicit Lstm(const Options& options);

  struct Output {
    Variable y;
    std::vector<LstmState> last;  ///< of each layer
  };
  using Layer::operator();
  /// lengths: i64 [N], or undefined if all sequences have T steps. initial: one state for each layer, or none if they
  /// are 0.
  Output operator()(const Variable& x, const Tensor& lengths, const std::vector<LstmState>& initial = {});
  /// y of whole sequences that start from 0.
  Variable forward(const Variable& x) override { return outputs(x, {}, {}).y; }

 private:
  /// The parameters of one layer. Null if there is none.
  struct Level {
    Parameter *input, *recurrent, *input_bias, *recurrent_bias, *projection, *peepholes;
  };
  Output outputs(const Variable& x, const Tensor& lengths, const std::vector<LstmState>& initial) const;

  std::vector<Level> levels_;
};

}  // namespace tern
