#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/random.h"
#include "tern/core/tensor.h"
#include "tern/layers/module.h"

namespace tern {

/// Some rows of a tensor (dimension 0), and of each some blocks of columns (dimension 1, with all dimensions behind
/// it), in the order listed; where a list is absent, all.
struct TensorSlice {
  std::optional<std::vector<int64_t>> rows, columns;
  int64_t block = 1;  ///< consecutive columns that one index names

  Shape shape_in(const Shape& whole) const;
};

/// A copy of the slice of x. f32, row-major, on the CPU.
Tensor take(const Tensor& x, const TensorSlice& slice);
/// The slice of x = y, whose shape is `slice.shape_in(x.shape())`; the rest of x stays.
void put(const Tensor& y, const TensorSlice& slice, const Tensor& x);

/// What independent subnet training partitions; all else is shared, and averaged.
enum class SubnetScope : uint8_t {
  fc,       ///< hidden neurons of fully connected layers (Yuan et al., "IST", section 3.1)
  filters,  ///< filters of convolutions; of residual blocks the inner channels (section 3.5)
};

/// A tensor whose indices along one dimension belong to the neurons of a hidden layer, in order.
struct NeuronIndex {
  std::string tensor;  ///< a parameter or buffer, by its name in the model
  int dimension = 0;   ///< 0 or 1
  int64_t block = 1;   ///< consecutive indices a neuron; in dimension 1 alone: H·W where a flatten follows a filter
};

/// The neurons or filters that are dealt out together: everything that has an index for each.
struct HiddenLayer {
  std::string name;  ///< for messages
  std::vector<NeuronIndex> indices;
};

/// Says of a model once which tensors' indices mean the same neurons; slicing, exchange and merging follow from it. A
/// plain value.
struct SubnetPlan {
  std::vector<HiddenLayer> layers;
};

/// What a model is, beside a Module, that can be trained by independent subnets.
class SubnetModel {
 public:
  virtual ~SubnetModel() = default;
  /// Without layers where the model has nothing of this kind.
  virtual SubnetPlan subnet_plan(SubnetScope scope) const = 0;
};

/// Which layer's neurons index a tensor's rows, and which its columns (dimension 1).
struct TensorCut {
  struct Axis {
    int layer = -1;  ///< none
    int64_t block = 1;
  };
  std::array<Axis, 2> axes;
  /// The axis that says where an element lives between rounds: its rows where they are cut.
  int first_axis() const { return axes[0].layer >= 0 ? 0 : 1; }
};

/// Before the names that an optimizer's state has: "optimizer/momentum.fc1.weight".
inline constexpr std::string_view kOptimizerPrefix = "optimizer/";

/// A plan that fits a model, by tensor. Immutable.
class SubnetCuts {
 public:
  /// An error names the layer and the tensor that do not fit: absent, cut twice, or of another number of neurons.
  SubnetCuts(const SubnetPlan& plan, Module& model);

  /// Null for a tensor that all ranks have whole. An optimizer's state is cut as its parameter, but for
  /// its count of steps.
  const TensorCut* find(std::string_view tensor) const;
  const std::vector<std::string>& names() const { return names_; }
  /// Neurons of each layer.
  const std::vector<int64_t>& widths() const { return widths_; }

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> widths_;
  std::map<std::string, TensorCut, std::less<>> cuts_;
};

/// The neurons of each layer that each rank trains: parts[layer][rank], ascending.
using SubnetParts = std::vector<std::vector<std::vector<int64_t>>>;

/// Rank r takes places ⌊r·m/n⌋ to ⌊(r+1)·m/n⌋ of one random permutation of a layer's m neurons, drawn by seed, round
/// and layer. An error where a layer has fewer neurons than there are ranks.
SubnetParts draw_subnets(const SubnetCuts& cuts, int ranks, uint64_t seed, uint32_t round);

/// Of a tensor of shape `whole` in `rank`'s subnet.
Shape subnet_shape(const TensorCut& cut, const Shape& whole, const SubnetParts& parts, int rank);

}  // namespace tern
