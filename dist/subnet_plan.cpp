#include "tern/dist/subnet_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/optim/optimizer.h"

namespace tern {
namespace {

std::vector<int64_t> random_permutation(int64_t count, const RandomStream& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i - 1, static_cast<uint32_t>(i))]);
  return order;
}

}  // namespace

SubnetCuts::SubnetCuts(const SubnetPlan& plan, Module& model) {
  const StateDict tensors = model.state();
  for (const auto& [name, indices] : plan.layers) {
    const auto layer = static_cast<int>(names_.size());
    int64_t neurons = -1;
    for (const auto& [tensor, dimension, block] : indices) {
      const Tensor* found = tensors.find(tensor);
      check(found != nullptr, "subnet plan, ", name, ": the model has no '", tensor, "'");
      check(found->dtype() == DType::f32 && found->format() == MemoryFormat::row_major, "subnet plan, ", name, ": '",
            tensor, "' is ", found->dtype(), ", ", found->format(), ", expected f32, row_major");
      check(dimension >= 0 && dimension < std::min(2, found->rank()), "subnet plan, ", name, ": dimension ", dimension,
            " of '", tensor, "' ", found->shape(), ", expected 0 or 1");
      check(block >= 1 && (dimension == 1 || block == 1) && found->size(dimension) % block == 0, "subnet plan, ", name,
            ": blocks of ", block, " along dimension ", dimension, " of '", tensor, "' ", found->shape());
      const int64_t here = found->size(dimension) / block;
      check(neurons < 0 || here == neurons, "subnet plan, ", name, ": '", tensor, "' ", found->shape(), " has ", here,
            " neurons along dimension ", dimension, ", '", indices.front().tensor, "' has ", neurons);
      neurons = here;
      TensorCut::Axis& axis = cuts_[tensor].axes[static_cast<size_t>(dimension)];
      check(axis.layer < 0, "subnet plan, ", name, ": dimension ", dimension, " of '", tensor, "' is cut twice");
      axis = {layer, block};
    }
    check(neurons > 0, "subnet plan, ", name, ": no neurons");
    names_.push_back(name);
    widths_.push_back(neurons);
  }
  check(!widths_.empty(), "subnet plan: no layers");
}

const TensorCut* SubnetCuts::find(std::string_view tensor) const {
  if (tensor.starts_with(kOptimizerPrefix)) {
    tensor.remove_prefix(kOptimizerPrefix.size());
    if (tensor.starts_with(kStepState)) return nullptr;
    tensor.remove_prefix(tensor.find('.') + 1);
  }
  const auto cut = cuts_.find(tensor);
  return cut == cuts_.end() ? nullptr : &cut->second;
}

SubnetParts draw_subnets(const SubnetCuts& cuts, int ranks, uint64_t seed, uint32_t round) {
  SubnetParts parts;
  for (size_t layer = 0; layer < cuts.widths().size(); ++layer) {
    const int64_t neurons = cuts.widths()[layer];
    check_input(neurons >= ranks, "independent subnets: ", cuts.names()[layer], " has ", neurons, " neurons for ",
                ranks, " ranks, expected as many or more");
    const RandomStream random(
        {.seed = seed, .purpose = Purpose::subnet, .step = round, .tensor = static_cast<uint32_t>(layer)});
    const std::vector<int64_t> order = random_permutation(neurons, random);
    auto& of_ranks = parts.emplace_back();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto& part =
          of_ranks.emplace_back(order.begin() + rank * neurons / ranks, order.begin() + (rank + 1) * neurons / ranks);
      std::ranges::sort(part);  // one rank alone trains the model in its own order
    }
  }
  return parts;
}

Shape subnet_shape(const TensorCut& cut, const Shape& whole, const SubnetParts& parts, int rank) {
  Shape shape = whole;
  for (int axis = 0; axis < 2; ++axis) {
    const auto [layer, block] = cut.axes[static_cast<size_t>(axis)];
    if (layer < 0) continue;
    const auto& part = parts[static_cast<size_t>(layer)][static_cast<size_t>(rank)];
    shape[axis] = static_cast<int64_t>(part.size()) * block;
  }
  return shape;
}

}  // namespace tern
