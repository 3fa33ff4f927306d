#include "tern/layers/module.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern {
namespace {

std::string under(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "." + name;
}

}  // namespace

Shape TensorRange::shape_in(const Shape& whole) const {
  check(dimension >= 0 && dimension < whole.rank() && 0 <= begin && begin <= end && end <= whole[dimension],
        "range of ", whole, ": found ", begin, " to ", end, " of dimension ", dimension,
        ", expected a range within one of its dimensions");
  Shape shape = whole;
  shape[dimension] = end - begin;
  return shape;
}

TensorPart::TensorPart(const Tensor& part, const Shape& of, const TensorRange& range) : values(part), whole(of) {
  check(values.shape() == range.shape_in(whole), "part of a tensor: values of shape ", values.shape(), ", expected ",
        range.shape_in(whole));
  const int64_t inner = whole.numel_from(range.dimension + 1);
  run = std::max<int64_t>(1, (range.end - range.begin) * inner);
  stride = whole[range.dimension] * inner;
  start = range.begin * inner;
}

template <class Visit>
void Module::visit_modules(const std::string& path, const Visit& visit) {
  visit(path, *this);
  for (const auto& child : children_) child.module->visit_modules(under(path, child.name), visit);
}

void Module::check_name(const std::string& name) const {
  check(!name.empty() && name.find('.') == std::string::npos, "module: name '", name, "', expected one without dots");
  const auto has_it = [&](const auto& owned) { return owned->name == name; };
  check(std::ranges::none_of(parameters_, has_it) && std::ranges::none_of(buffers_, has_it) &&
            !std::ranges::count(children_, name, &Child::name),
        "module: '", name, "' is there twice");
}

Module& Module::add_module(std::string name, std::unique_ptr<Module> module) {
  check_name(name);
  module->visit_modules(
      {}, [&](const std::string&, Module& below) { below.path_ = under(under(path_, name), below.path_); });
  children_.push_back({std::move(name), std::move(module)});
  return *children_.back().module;
}

Parameter& Module::add_parameter(std::string name, const Shape& shape, Initializer initializer) {
  check_name(name);
  check(initializer != nullptr, "module: parameter '", name, "' has no initializer");
  auto own = std::make_unique<OwnParameter>();
  own->name = std::move(name);
  own->first_shape = shape;
  own->initializer = std::move(initializer);
  return parameters_.emplace_back(std::move(own))->parameter;
}

Tensor& Module::add_buffer(std::string name, const Shape& shape, double value) {
  check_name(name);
  return buffers_.emplace_back(std::make_unique<OwnBuffer>(OwnBuffer{std::move(name), shape, value, false, {}}))
      ->tensor;
}

Tensor& Module::add_counter(std::string name) {
  check_name(name);
  return buffers_.emplace_back(std::make_unique<OwnBuffer>(OwnBuffer{std::move(name), {}, 0, true, {}}))->tensor;
}

void Module::initialize(uint64_t seed, DType dtype, Device device, const RangeOf& range_of) {
  check(dtype == DType::f32 || dtype == DType::f64, "initialize: parameters of ", dtype, ", expected f32 or f64");
  uint32_t number = 0;
  visit_modules({}, [&](const std::string& path, Module& module) {
    const auto range = [&](const std::string& name) { return range_of ? range_of(under(path, name)) : std::nullopt; };
    for (const auto& own : module.parameters_) {
      const RandomStream random({.seed = seed, .purpose = Purpose::initialize, .tensor = number++});
      const auto kept = range(own->name);
      const Tensor value = Tensor::empty(kept ? kept->shape_in(own->first_shape) : own->first_shape, {dtype});
      own->initializer(kept ? TensorPart(value, own->first_shape, *kept) : TensorPart(value), random);
      own->parameter.set_value(value.to(device));
    }
    for (const auto& own : module.buffers_) {
      const auto kept = range(own->name);
      own->tensor = Tensor::full(kept ? kept->shape_in(own->first_shape) : own->first_shape, own->value,
                                 {own->counter ? DType::i64 : dtype});
      if (!own->counter) own->tensor = own->tensor.to(device);
    }
  });
}

void Module::check_initialized() const {
  const auto check_value = [&](const std::string& name, const Tensor& value) {
    check(value.defined(), path_.empty() ? "model" : path_, ": '", name,
          "' has no value yet; call initialize(seed) on the model before its first forward");
  };
  for (const auto& own : parameters_) check_value(own->name, own->parameter.value());
  for (const auto& own : buffers_) check_value(own->name, own->tensor);
}

void Module::set_training(bool training) {
  visit_modules({}, [&](const std::string&, Module& module) { module.training_ = training; });
}

void Module::begin_step(const StepContext& context) {
  uint32_t number = 0;
  std::vector<Parameter*> all;
  visit_modules({}, [&](const std::string&, Module& module) {
    module.on_step(context, number++);
    for (const auto& own : module.parameters_) all.push_back(&own->parameter);
  });
  copy_parameters(all);
}

std::vector<NamedParameter> Module::parameters() {
  std::vector<NamedParameter> found;
  visit_modules({}, [&](const std::string& path, Module& module) {
    for (const auto& own : module.parameters_) found.push_back({under(path, own->name), &own->parameter});
  });
  return found;
}

std::vector<NamedBuffer> Module::buffers() {
  std::vector<NamedBuffer> found;
  visit_modules({}, [&](const std::string& path, Module& module) {
    for (const auto& own : module.buffers_) found.push_back({under(path, own->name), &own->tensor});
  });
  return found;
}

std::vector<NamedShape> Module::whole_shapes() {
  std::vector<NamedShape> parameters, buffers;
  visit_modules({}, [&](const std::string& path, Module& module) {
    for (const auto& own : module.parameters_) parameters.push_back({under(path, own->name), own->first_shape});
    for (const auto& own : module.buffers_) buffers.push_back({under(path, own->name), own->first_shape});
  });
  parameters.insert(parameters.end(), buffers.begin(), buffers.end());
  return parameters;
}

std::vector<NamedModule> Module::modules() {
  std::vector<NamedModule> found;
  visit_modules({}, [&](const std::string& path, Module& module) { found.push_back({path, &module}); });
  return found;
}

StateDict Module::state() {
  StateDict state;
  const auto add = [&](const std::string& name, const Tensor& value) {
    check(value.defined(), "state: '", name, "' has no value yet; call initialize(seed) first");
    state.add(name, value);
  };
  for (const auto& [name, parameter] : parameters()) add(name, parameter->value());
  for (const auto& [name, buffer] : buffers()) add(name, *buffer);
  return state;
}

void Module::load_state(const StateDict& given) { copy_state(given, state(), "the model"); }

PartialCopy Module::load_matching_state(const StateDict& given) {
  PartialCopy copy = copy_matching_state(given, state());
  check_input(!copy.taken.empty(), "load: none of the ", given.size(), " tensors fits the model",
              copy.left.empty() ? "" : "; the first is ", copy.left.empty() ? "" : copy.left.front());
  return copy;
}

void Module::freeze(const std::string& pattern) {
  bool any = false;
  for (const auto& [name, parameter] : parameters()) {
    if (!name_matches(name, pattern)) continue;
    parameter->freeze();
    any = true;
  }
  check_input(any, "freeze '", pattern, "' matches none of the model's parameters; the last is '",
              parameters().empty() ? "" : parameters().back().name, "'");
}

std::vector<NamedParameter> Module::trained_parameters() {
  std::vector<NamedParameter> trained = parameters();
  std::erase_if(trained, [](const NamedParameter& named) { return named.parameter->frozen(); });
  return trained;
}

int64_t Module::parameter_count() {
  int64_t count = 0;
  visit_modules({}, [&](const std::string&, Module& module) {
    for (const auto& own : module.parameters_) {
      const Tensor& value = own->parameter.value();
      count += value.defined() ? value.numel() : own->first_shape.numel();
    }
  });
  return count;
}

void Module::zero_gradients() {
  for (const auto& [name, parameter] : parameters()) parameter->zero_gradient();
}

EvaluationMode::EvaluationMode(Module& model) {
  for (const auto& [name, module] : model.modules()) was_training_.emplace_back(module, module->training());
  model.set_training(false);
}

EvaluationMode::~EvaluationMode() {
  for (const auto& [module, training] : was_training_) module->set_training(training);
}

}  // namespace tern
