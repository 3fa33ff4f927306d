#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/random.h"
#include "tern/core/state_dict.h"

namespace tern {

/// Indices [begin, end) of one dimension of a tensor.
struct TensorRange {
  int dimension = 0;
  int64_t begin = 0, end = 0;

  Shape shape_in(const Shape& whole) const;
};

/// A tensor with the elements of a range of a whole tensor, which may be absent. A plain value.
struct TensorPart {
  TensorPart(const Tensor& tensor) : values(tensor), whole(tensor.shape()) {}
  /// The shape of `part` is `range.shape_in(of)`.
  TensorPart(const Tensor& part, const Shape& of, const TensorRange& range);

  /// The index in the whole tensor, row-major, of element i of `values`.
  uint64_t place(int64_t i) const { return static_cast<uint64_t>(i / run * stride + start + i % run); }

  Tensor values;
  Shape whole;                             ///< shape of the whole tensor
  int64_t run = 1, stride = 1, start = 0;  ///< `run` elements in a row, every `stride` of the whole, from `start`
};

/// Fills a new tensor, or the part of it that a rank keeps: an element has the same value in both. Each parameter has a
/// random stream of its own.
using Initializer = std::function<void(const TensorPart& tensor, const RandomStream& random)>;

/// The range of a parameter or buffer that a rank keeps, by its name; nothing for a tensor that it keeps whole.
using RangeOf = std::function<std::optional<TensorRange>(std::string_view name)>;

/// What random layers need to know of a training step. `samples` are the global indices of the batch, i64 [N].
struct StepContext {
  uint64_t seed = 0;
  uint32_t step = 0;
  Tensor samples;
};

class Module;

struct NamedBuffer {
  std::string name;  ///< path from the root module, as a NamedParameter's
  Tensor* buffer;
};
struct NamedShape {
  std::string name;
  Shape shape;
};
struct NamedModule {
  std::string name;  ///< "" for the root
  Module* module;
};

/// Base of layers and models. It owns parameters, buffers (state that no gradient changes) and submodules, each under a
/// name of its own. The width of a layer is the shape of its tensors, so narrower tensors make a narrower layer. Not
/// copyable. One thread at a time uses it.
///
///   struct LeNet final : Layer {
///     Variable forward(const Variable& x) override;
///     Conv2d& conv1 = add<Conv2d>("conv1", {.in = 1, .out = 20, .kernel = 5});
///   };
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// `hook` sees every output of this module that is one Variable, after the outputs of its submodules. An empty hook
  /// ends that.
  void on_output(std::function<void(const Variable& y)> hook) { on_output_ = std::move(hook); }

  /// Draws the first value of every parameter, in `dtype` (f32 or f64), and sets every buffer. The random streams have
  /// `seed`, and numbers in the order of `parameters()`. Call it once, before the first forward. With `range_of`, the
  /// module gets narrower tensors: the ranges of the same values, and never the whole.
  void initialize(uint64_t seed, DType dtype = DType::f32, Device device = {}, const RangeOf& range_of = {});

  /// Training (the default) or evaluation, for this module and all below.
  void set_training(bool training);
  bool training() const { return training_; }
  /// Tells all random layers below which step comes, and copies the parameters that a GPU reads in another form. The
  /// trainer calls it before each forward. The layers have numbers in the order of `modules()`.
  void begin_step(const StepContext& context);

  /// In the order of construction, depth first. Own parameters come before those of submodules.
  std::vector<NamedParameter> parameters();
  std::vector<NamedBuffer> buffers();
  /// The shapes of parameters, then of buffers, as the module was made. They need no values.
  std::vector<NamedShape> whole_shapes();
  /// This module and all below, parents first.
  std::vector<NamedModule> modules();
  /// Parameters, then buffers, under PyTorch's names. They share storage with the model.
  StateDict state();
  /// Copies the values into the model. Throws InputError, and changes nothing, if a tensor is missing, unexpected or of
  /// another shape; the error names the first such tensor and both shapes.
  void load_state(const StateDict& state);
  /// Copies the tensors that fit, as for a model with a new last layer. Throws InputError if none fits.
  PartialCopy load_matching_state(const StateDict& state);
  /// The number of elements of all parameters. Before `initialize`, of those that it will make.
  int64_t parameter_count();
  void zero_gradients();

  /// Freezes the parameters whose names match, such as "layer1.*": they get no gradient, stay as they are, and are not
  /// exchanged. Call it before you make an optimizer or a method. `*` stands for any characters. Throws InputError if
  /// no name matches. Batch norm goes on to update its running statistics.
  void freeze(const std::string& pattern);
  /// The parameters that are not frozen, in the order of `parameters()`.
  std::vector<NamedParameter> trained_parameters();

 protected:
  /// Constructs a submodule in place, from default `Options` if it needs some.
  template <class Submodule>
  Submodule& add(std::string name) {
    if constexpr (std::default_initializable<Submodule>)
      return static_cast<Submodule&>(add_module(std::move(name), std::make_unique<Submodule>()));
    else
      return add<Submodule>(std::move(name), typename Submodule::Options{});
  }
  template <class Submodule>
  Submodule& add(std::string name, const typename Submodule::Options& options) {
    return static_cast<Submodule&>(add_module(std::move(name), std::make_unique<Submodule>(options)));
  }
  // A name has no dots, and no other child, parameter or buffer of this module has it: otherwise an Error.
  Module& add_module(std::string name, std::unique_ptr<Module> module);
  Parameter& add_parameter(std::string name, const Shape& shape, Initializer initializer);
  /// A buffer of f32 (of f64 if the parameters are f64). All elements start at `value`.
  Tensor& add_buffer(std::string name, const Shape& shape, double value);
  /// An i64 buffer of one element that starts at 0. It is on the CPU, whatever the device of the model.
  Tensor& add_counter(std::string name);
  /// A random layer overrides this to learn its step and its number.
  virtual void on_step(const StepContext&, uint32_t /*number*/) {}

  /// Runs a forward with any arguments: `run([&] { return forward(x, lengths); })`. Throws an Error that names this
  /// module if its parameters or buffers have no values yet. The output hook sees the result if it is one Variable.
  template <class Forward>
  auto run(Forward&& forward_here) {
    check_initialized();
    auto y = forward_here();
    if constexpr (std::is_same_v<decltype(y), Variable>)
      if (on_output_) on_output_(y);
    return y;
  }

 private:
  struct OwnParameter {
    std::string name;
    Shape first_shape;
    Initializer initializer;
    Parameter parameter;
  };
  struct OwnBuffer {
    std::string name;
    Shape first_shape;
    double value;
    bool counter;
    Tensor tensor;
  };
  struct Child {
    std::string name;
    std::unique_ptr<Module> module;
  };

  void check_name(const std::string& name) const;
  void check_initialized() const;
  template <class Visit>
  void visit_modules(const std::string& path, const Visit& visit);

  std::vector<std::unique_ptr<OwnParameter>> parameters_;
  std::vector<std::unique_ptr<OwnBuffer>> buffers_;
  std::vector<Child> children_;
  std::function<void(const Variable&)> on_output_;
  std::string path_;  // from the root, for messages
  bool training_ = true;
};

/// A module that makes one Variable from one Variable. `Sequential` takes layers.
class Layer : public Module {
 public:
  virtual Variable forward(const Variable& x) = 0;
  /// `forward`, then the output hook. Throws an Error that names this layer if its tensors have no values yet.
  Variable operator()(const Variable& x) {
    return run([&] { return forward(x); });
  }
};

/// The interface of a layer that ranks can compute together, each with some of its inputs and their weights (in tensor
/// parallelism, a row-parallel layer). What follows the products, such as a bias, is applied after the sum over ranks.
class InputParallel {
 public:
  /// Adds up a tensor of products over all ranks, in place.
  using SumOverRanks = std::function<void(const Tensor& products)>;

  virtual ~InputParallel() = default;
  /// From now on, `forward` calls `sum` for its products. An empty `sum` ends that: the layer has all of its inputs.
  virtual void add_over_ranks(SumOverRanks sum) = 0;
};

/// While one lives, a module and all below are in evaluation mode. Then each goes back to its own mode. The module must
/// not get or lose submodules meanwhile.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> was_training_;  ///< parents first
};

}  // namespace tern
