#include "tern/dist/methods/sharded_subnets.h"

#include <algorithm>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/stopwatch.h"
#include "tern/dist/methods/replicas.h"

namespace tern {
namespace {

constexpr int64_t kSummedElements = 1 << 20;  // elements of one sum over ranks: 4 MiB in f32

/// The one axis of `cut` that belongs to neurons: its dimension and block.
std::pair<int, int64_t> axis_of(const TensorCut& cut) {
  const int dimension = cut.first_axis();
  return {dimension, cut.axes[static_cast<size_t>(dimension)].block};
}

/// The layers of `model` that have a tensor with columns that belong to neurons.
std::vector<InputParallel*> layers_behind(Module& model, const SubnetCuts& cuts) {
  std::vector<InputParallel*> layers;
  for (const auto& [path, module] : model.modules()) {
    auto* layer = dynamic_cast<InputParallel*>(module);
    if (layer == nullptr) continue;
    const bool behind = std::ranges::any_of(module->whole_shapes(), [&, &path = path](const NamedShape& tensor) {
      const TensorCut* cut = cuts.find(path.empty() ? tensor.name : path + "." + tensor.name);
      return cut != nullptr && cut->first_axis() == 1;
    });
    if (behind) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

RangeOf home_ranges(const SubnetCuts& cuts, int rank, int ranks) {
  return [&cuts,
          own = neuron_range(rank, ranks, cuts.widths().front())](std::string_view name) -> std::optional<TensorRange> {
    const TensorCut* cut = cuts.find(name);
    if (cut == nullptr) return {};
    const auto [dimension, block] = axis_of(*cut);
    return TensorRange{dimension, own.begin * block, own.end * block};
  };
}

void check_sharded_cuts(const SubnetCuts& cuts) {
  check_input(cuts.widths().size() == 1, "the model has ", cuts.widths().size(), " hidden layers (",
              cuts.names().front(), " to ", cuts.names().back(),
              "), expected one: a rank keeps all weights of its neurons, and between two hidden layers each weight "
              "belongs to neurons of both");
  check_input(cuts.cuts_once(), "a tensor of ", cuts.names().front(),
              " is cut along two dimensions or belongs to one neuron, expected tensors that have an index for each "
              "neuron along one dimension");
}

ShardedSubnets::ShardedSubnets(Module& model, Optimizer& local, Communicator& communicator, const SubnetCuts& cuts,
                               const Options& options)
    : DistributedOptimizer(model, local),
      options_(options),
      communicator_(communicator),
      cuts_(cuts),
      outputs_(layers_behind(model, cuts_)) {
  check_sharded_cuts(cuts_);
  for (const auto& named : model.parameters()) {
    check_input(!named.parameter->frozen(), "sharded subnets: '", named.name,
                "' is frozen, expected no frozen parameters");
    if (cuts_.find(named.name) == nullptr) shared_.push_back(named);
  }
  check(options.local_steps >= 1, "sharded subnets: ", options.local_steps, " local steps, expected 1 or more");
  check_input(!outputs_.empty(), "sharded subnets: no layer behind ", cuts_.names().front(),
              " adds up its products over ranks, expected one that derives from InputParallel, such as Linear");
  draw_subnets(cuts_, communicator.size(), options.seed, 0);  // throws if the layer is too narrow
  neurons_ = home_neurons(cuts_.widths().front(), communicator.size());
}

void ShardedSubnets::begin_step(int64_t step) {
  steps_ = step;
  if (!in_round()) begin_round(step / options_.local_steps);
  if (!consolidated_) return;
  add_over_ranks(false);
  consolidated_ = false;
  if (!in_round()) return;
  deal(drawn(step / options_.local_steps), Account::overhead);
  copy_state(std::exchange(own_, {}), own_values(), "the subnet");
}

void ShardedSubnets::begin_round(int64_t round) {
  deal(drawn(round), Account::payload);
  if (options_.momentum == SubnetMomentum::drop)
    for (const auto& [name, tensor] : local_.state()) tensor.fill(0);
}

void ShardedSubnets::step() {
  local_.step();
  ++steps_;
  if (in_round()) return;
  for (const auto& [name, value] : average_of_uncut(model_, cuts_, communicator_, Account::payload, wait_))
    model_.state().at(name).copy_from(value);
  check_after_round(communicator_, shared_, steps_ - 1, options_.local_steps, options_.check_every);
}

void ShardedSubnets::consolidate() {
  if (consolidated_) return;
  if (in_round()) {
    for (const auto& [name, tensor] : own_values()) own_.add(name, tensor.clone());
    const StateDict model = model_.state();
    for (const auto& [name, value] : average_of_uncut(model_, cuts_, communicator_, Account::overhead, wait_))
      model.at(name).copy_from(value);
  }
  add_over_ranks(true);
  consolidated_ = true;
}

void ShardedSubnets::bring_home() {
  check(consolidated_, "sharded subnets: a model is brought home after consolidate");
  deal(home_neurons(cuts_.widths().front(), communicator_.size()), Account::overhead);
}

NeuronLists ShardedSubnets::drawn(int64_t round) const {
  return draw_subnets(cuts_, communicator_.size(), options_.seed, static_cast<uint32_t>(round)).front();
}

void ShardedSubnets::deal(const NeuronLists& to, Account account) {
  if (to == neurons_) return;
  const Stopwatch watch(wait_);
  NeuronDeal deal(communicator_, neurons_, to);
  const auto move = [&](const std::string& name, const Tensor& tensor) {
    const TensorCut* cut = cuts_.find(name);
    if (cut == nullptr) return;
    const auto [dimension, block] = axis_of(*cut);
    deal.move(tensor, dimension, block, account);
  };
  for (const auto& [name, tensor] : model_.state()) move(name, tensor);
  // State that begins at zero in each round need not travel to it.
  const bool travels = options_.momentum == SubnetMomentum::travel || in_round();
  if (travels)
    for (const auto& [name, tensor] : local_.state()) move(std::string(kOptimizerPrefix) + name, tensor);
  neurons_ = to;
}

/// What `consolidate` and the calibration of statistics change: the tensors that are not cut, and all buffers.
StateDict ShardedSubnets::own_values() {
  StateDict own;
  for (const auto& [name, parameter] : shared_) own.add(name, parameter->value());
  for (const auto& [name, buffer] : model_.buffers()) own.add(name, *buffer);
  return own;
}

void ShardedSubnets::add_over_ranks(bool add) {
  InputParallel::SumOverRanks sum;
  if (add)
    sum = [this](const Tensor& products) {
      const Tensor all = products.reshape({-1});
      for (int64_t begin = 0; begin < all.numel(); begin += kSummedElements) {
        Tensor piece = all.slice(begin, std::min(all.numel(), begin + kSummedElements));
        communicator_.all_reduce(piece, Reduction::sum, Account::overhead).wait();
      }
    };
  for (InputParallel* output : outputs_) output->add_over_ranks(sum);
}

StateDict ShardedSubnets::state() {
  check(consolidated_ && neurons_ == home_neurons(cuts_.widths().front(), communicator_.size()),
        "sharded subnets: a checkpoint is taken after bring_home");
  StateDict state;
  for (const auto& [name, tensor] : own_) state.add("own." + name, tensor);
  return state;
}

void ShardedSubnets::load_state(const StateDict& state, int64_t steps) {
  steps_ = steps;
  neurons_ = home_neurons(cuts_.widths().front(), communicator_.size());
  own_ = {};
  if (in_round())
    for (const auto& [name, tensor] : own_values()) own_.add(name, tensor.clone());
  add_over_ranks(true);
  consolidated_ = true;
  copy_state(state, this->state(), "sharded subnets");
}

}  // namespace tern
