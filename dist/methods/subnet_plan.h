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

/// Some rows of a tensor (dimension 0), and of each row some blocks of columns (dimension 1, with all dimensions after
/// it), in the listed order. An absent list means all.
struct TensorSlice {
  std::optional<std::vector<int64_t>> rows, columns;
  int64_t block = 1;  ///< consecutive columns per index

  Shape shape_in(const Shape& whole) const;
};

/// A copy of the slice of x. Both are f32, row-major, on the CPU.
Tensor take(const Tensor& x, const TensorSlice& slice);
/// Copies y into the slice of x, both on the CPU. The shape of y is `slice.shape_in(x.shape())`. The rest of x stays.
void put(const Tensor& y, const TensorSlice& slice, const Tensor& x);

/// What independent subnet training partitions. Everything else is shared and averaged.
enum class SubnetScope : uint8_t {
  fc,       ///< hidden neurons of fully connected layers (Yuan et al., "IST", section 3.1)
  filters,  ///< filters of convolutions; in residual blocks the inner channels (section 3.5)
  blocks,   ///< whole residual blocks whose shortcut changes nothing (Dun et al., "ResIST")
};

/// A tensor whose indices along one dimension belong to the neurons of a hidden layer, in order. Or a tensor that
/// belongs to one neuron: then `neuron` is set. In the subnets of the other ranks it has no rows.
struct NeuronIndex {
  std::string tensor;  ///< name of a parameter or buffer in the model
  int dimension = 0;   ///< 0 or 1
  int64_t block = 1;   ///< consecutive indices per neuron; above 1 only in dimension 1: H·W after a flatten
  std::optional<int64_t> neuron = {};
};

/// Neurons, filters or residual blocks that are partitioned together, with every tensor that has an index for each of
/// them or belongs to one of them.
struct HiddenLayer {
  std::string name;  ///< for messages
  std::vector<NeuronIndex> indices;
};

/// Tells which tensor indices of a model belong to the same neurons. Slicing, exchange and merging follow from it. A
/// plain value.
struct SubnetPlan {
  std::vector<HiddenLayer> layers = {};
  std::string units = "neurons";  ///< what the ranks share out, for messages
};

/// The interface of a Module that can be trained by independent subnets.
class SubnetModel {
 public:
  virtual ~SubnetModel() = default;
  /// A plan without layers if the model has nothing of this kind.
  virtual SubnetPlan subnet_plan(SubnetScope scope) const = 0;
};

/// The layers whose neurons index a tensor's rows and columns (dimension 1).
struct TensorCut {
  struct Axis {
    int layer = -1;  ///< -1: the axis is not cut
    int64_t block = 1;
  };
  std::array<Axis, 2> axes;
  std::optional<int64_t> neuron = {};  ///< of the layer of axes[0], if the tensor belongs to one neuron
  /// The axis that decides which rank keeps an element between rounds: the rows if they are cut, else the columns.
  int first_axis() const { return axes[0].layer >= 0 ? 0 : 1; }
};

/// Prefix of the names of an optimizer's state: "optimizer/momentum.fc1.weight".
inline constexpr std::string_view kOptimizerPrefix = "optimizer/";

/// The cuts of a model's tensors, from a plan that fits the model. Immutable.
class SubnetCuts {
 public:
  /// Throws Error that names the layer and the tensor that does not fit: it is absent, cut twice, or has another number
  /// of neurons.
  SubnetCuts(const SubnetPlan& plan, Module& model);
  /// From the shapes of the whole model's tensors.
  SubnetCuts(const SubnetPlan& plan, const std::vector<NamedShape>& tensors);

  /// Returns null for a tensor that all ranks have whole. An optimizer's state is cut like its parameter, except its
  /// step count.
  const TensorCut* find(std::string_view tensor) const;
  /// Whether every cut tensor has indices for all neurons of a layer, along one dimension.
  bool cuts_once() const;
  const std::vector<std::string>& names() const { return names_; }
  const std::string& units() const { return units_; }
  /// Neurons of each layer.
  const std::vector<int64_t>& widths() const { return widths_; }

 private:
  std::string units_;
  std::vector<std::string> names_;
  std::vector<int64_t> widths_;
  std::map<std::string, TensorCut, std::less<>> cuts_;
};

/// Neurons or places [begin, end) of a layer.
struct NeuronRange {
  int64_t begin = 0, end = 0;
};
/// Rank r's range of m: ⌊r·m/n⌋ to ⌊(r+1)·m/n⌋ for n ranks.
NeuronRange neuron_range(int64_t rank, int64_t ranks, int64_t neurons);

/// The neurons of each layer that each rank trains: parts[layer][rank], ascending.
using SubnetParts = std::vector<std::vector<std::vector<int64_t>>>;

/// Each rank gets the places of `neuron_range` in one random permutation of a layer's neurons. Seed, round and layer
/// determine the permutation. Throws InputError if a layer has fewer neurons than there are ranks.
SubnetParts draw_subnets(const SubnetCuts& cuts, int ranks, uint64_t seed, uint32_t round);

/// The shape in `rank`'s subnet of a tensor of shape `whole`.
Shape subnet_shape(const TensorCut& cut, const Shape& whole, const SubnetParts& parts, int rank);

}  // namespace tern
