#include "tern/dist/methods/subnet_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/optim/optimizer.h"

namespace tern {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements per thread

/// Calls `copy(at, of, count)` for every run of `count` elements, at offset `at` in the whole and `of` in the slice.
template <class Copy>
void visit_runs(const Shape& whole, const TensorSlice& slice, const Copy& copy) {
  const Shape part = slice.shape_in(whole);
  if (part.numel() == 0) return;
  const int64_t row = whole.numel() / whole[0], part_row = part.numel() / part[0];
  const int64_t run = slice.columns ? slice.block * (row / whole[1]) : row;
  parallel_for(0, part[0], std::max<int64_t>(1, kGrain / part_row), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t at = row * (slice.rows ? (*slice.rows)[static_cast<size_t>(i)] : i);
      int64_t of = part_row * i;
      if (!slice.columns) {
        copy(at, of, run);
      } else {
        for (const int64_t column : *slice.columns) {
          copy(at + column * run, of, run);
          of += run;
        }
      }
    }
  });
}

void check_indices(const std::vector<int64_t>& indices, int64_t extent, const Shape& whole) {
  for (const int64_t index : indices)
    check(index >= 0 && index < extent, "slice of ", whole, ": index ", index, " of ", extent);
}

/// Rows and columns of x can be copied by their places.
void check_rows(const char* operation, const Tensor& x) {
  check(x.device() == Device{} && x.format() == MemoryFormat::row_major, operation, ": found a tensor on ", x.device(),
        ", ", x.format(), ", expected the CPU, row_major");
}

std::vector<NamedShape> shapes_of(Module& model) {
  std::vector<NamedShape> shapes;
  for (const auto& [name, tensor] : model.state()) shapes.push_back({name, tensor.shape()});
  return shapes;
}

}  // namespace

Shape TensorSlice::shape_in(const Shape& whole) const {
  Shape shape = whole;
  if (rows) {
    check_indices(*rows, whole[0], whole);
    shape[0] = static_cast<int64_t>(rows->size());
  }
  if (columns) {
    check_indices(*columns, whole[1] / block, whole);
    shape[1] = static_cast<int64_t>(columns->size()) * block;
  }
  return shape;
}

Tensor take(const Tensor& x, const TensorSlice& slice) {
  check_rows("take", x);
  Tensor y = Tensor::empty(slice.shape_in(x.shape()));
  const float* from = x.data<float>();
  float* to = y.data<float>();
  visit_runs(x.shape(), slice, [=](int64_t at, int64_t of, int64_t count) { std::copy_n(from + at, count, to + of); });
  return y;
}

void put(const Tensor& y, const TensorSlice& slice, const Tensor& x) {
  check(y.shape() == slice.shape_in(x.shape()), "put: y is ", y.shape(), ", the slice ", slice.shape_in(x.shape()));
  check_rows("put", y);
  check_rows("put", x);
  const float* from = y.data<float>();
  float* to = x.data<float>();
  visit_runs(x.shape(), slice, [=](int64_t at, int64_t of, int64_t count) { std::copy_n(from + of, count, to + at); });
  x.mark_written();
}

SubnetCuts::SubnetCuts(const SubnetPlan& plan, Module& model) : SubnetCuts(plan, shapes_of(model)) {
  const StateDict tensors = model.state();
  for (const auto& [name, indices] : plan.layers)
    for (const auto& [tensor, dimension, block, neuron] : indices)
      check(tensors.at(tensor).dtype() == DType::f32, "subnet plan, ", name, ": '", tensor, "' is ",
            tensors.at(tensor).dtype(), ", expected f32");
}

SubnetCuts::SubnetCuts(const SubnetPlan& plan, const std::vector<NamedShape>& tensors) : units_(plan.units) {
  for (const auto& [name, indices] : plan.layers) {
    const auto layer = static_cast<int>(names_.size());
    int64_t neurons = -1;
    for (const auto& [tensor, dimension, block, neuron] : indices) {
      const auto found = std::ranges::find(tensors, tensor, &NamedShape::name);
      check(found != tensors.end(), "subnet plan, ", name, ": the model has no '", tensor, "'");
      const Shape& shape = found->shape;
      check(dimension >= 0 && dimension < std::min(2, shape.rank()), "subnet plan, ", name, ": dimension ", dimension,
            " of '", tensor, "' ", shape, ", expected 0 or 1");
      check(block >= 1 && (dimension == 1 || block == 1) && shape[dimension] % block == 0, "subnet plan, ", name,
            ": blocks of ", block, " along dimension ", dimension, " of '", tensor, "' ", shape);
      TensorCut& cut = cuts_[tensor];
      TensorCut::Axis& axis = cut.axes[static_cast<size_t>(dimension)];
      check(axis.layer < 0 && !cut.neuron, "subnet plan, ", name, ": dimension ", dimension, " of '", tensor,
            "' is cut twice");
      axis = {layer, block};
      if (neuron) {
        check(dimension == 0 && *neuron >= 0 && cut.axes[1].layer < 0, "subnet plan, ", name, ": '", tensor,
              "' belongs to neuron ", *neuron, " and is cut, too");
        cut.neuron = neuron;
        neurons = std::max(neurons, *neuron + 1);
        continue;
      }
      const int64_t here = shape[dimension] / block;
      check(neurons < 0 || here == neurons, "subnet plan, ", name, ": '", tensor, "' ", shape, " has ", here,
            " neurons along dimension ", dimension, ", '", indices.front().tensor, "' has ", neurons);
      neurons = here;
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

bool SubnetCuts::cuts_once() const {
  return std::ranges::all_of(cuts_, [](const auto& entry) {
    const TensorCut& cut = entry.second;
    return !cut.neuron && (cut.axes[0].layer < 0 || cut.axes[1].layer < 0);
  });
}

NeuronRange neuron_range(int64_t rank, int64_t ranks, int64_t neurons) {
  return {rank * neurons / ranks, (rank + 1) * neurons / ranks};
}

SubnetParts draw_subnets(const SubnetCuts& cuts, int ranks, uint64_t seed, uint32_t round) {
  SubnetParts parts;
  for (size_t layer = 0; layer < cuts.widths().size(); ++layer) {
    const int64_t neurons = cuts.widths()[layer];
    check_input(neurons >= ranks, "independent subnets: ", cuts.names()[layer], " has ", neurons, " ", cuts.units(),
                " for ", ranks, " ranks, expected as many or more");
    const RandomStream random(
        {.seed = seed, .purpose = Purpose::subnet, .step = round, .tensor = static_cast<uint32_t>(layer)});
    std::vector<int64_t> order(static_cast<size_t>(neurons));
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, random);
    auto& of_ranks = parts.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      const NeuronRange own = neuron_range(rank, ranks, neurons);
      auto& part = of_ranks.emplace_back(order.begin() + own.begin, order.begin() + own.end);
      std::ranges::sort(part);  // so that a single rank trains the model in its own order
    }
  }
  return parts;
}

Shape subnet_shape(const TensorCut& cut, const Shape& whole, const SubnetParts& parts, int rank) {
  Shape shape = whole;
  if (cut.neuron) {
    const auto& part = parts[static_cast<size_t>(cut.axes[0].layer)][static_cast<size_t>(rank)];
    if (!std::ranges::binary_search(part, *cut.neuron)) shape[0] = 0;
    return shape;
  }
  for (int axis = 0; axis < 2; ++axis) {
    const auto [layer, block] = cut.axes[static_cast<size_t>(axis)];
    if (layer < 0) continue;
    const auto& part = parts[static_cast<size_t>(layer)][static_cast<size_t>(rank)];
    shape[axis] = static_cast<int64_t>(part.size()) * block;
  }
  return shape;
}

}  // namespace tern
