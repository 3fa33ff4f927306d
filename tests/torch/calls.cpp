#include "tests/torch/calls.h"

#include <cmath>
#include <limits>

namespace tern::torch_cases {
namespace {

using Variables = std::vector<Variable>;

ConvGeometry geometry(const Call& c) {
  return {.stride = c.pair("stride"),
          .padding = c.pair("padding"),
          .dilation = c.pair("dilation"),
          .groups = c.whole("groups")};
}

PoolGeometry window(const Call& c) {
  PoolGeometry pool = {.window = c.pair("window"),
                       .stride = c.pair("stride"),
                       .padding = c.pair("padding"),
                       .ceil_mode = c.flag("ceil_mode")};
  if (c.attributes.contains("count_include_pad")) pool.count_include_pad = c.flag("count_include_pad");
  return pool;
}

LossReduction reduction(const Call& c) {
  const std::string word = c.word("reduction");
  if (word == "mean") return LossReduction::mean;
  if (word == "sum") return LossReduction::sum;
  if (word == "none") return LossReduction::none;
  throw InputError("reduction '" + word + "'");
}

/// `of(x)` with `dimension` as the last one.
template <class Of>
Variable along(const Variable& x, int dimension, const Of& of) {
  const int rank = x.value().rank();
  if (rank == 0 || dimension == -1 || dimension == rank - 1) return of(x);
  return transpose(of(transpose(x, dimension, -1)), dimension, -1);
}

Variable with_number(const Call& c) {
  const Variable& x = c.inputs[0];
  const double number = c.number("number");
  const char symbol = c.word("operator")[0];
  if (c.flag("reversed")) return number - x;
  if (symbol == '+') return x + number;
  if (symbol == '-') return x - number;
  return symbol == '*' ? x * number : x / number;
}

/// A layer's options by its name.
std::shared_ptr<Module> make_layer(const Call& c) {
  const std::string name = c.word("layer");
  if (name == "Linear")
    return std::make_shared<Linear>(
        Linear::Options{.in = c.whole("in"), .out = c.whole("out"), .bias = c.flag("bias")});
  if (name == "Conv2d") {
    Conv2d::Options o = {.in = c.whole("in"),
                         .out = c.whole("out"),
                         .kernel = c.pair("kernel"),
                         .stride = c.pair("stride"),
                         .padding = c.pair("padding")};
    o.same = c.flag("same");
    o.dilation = c.pair("dilation");
    o.groups = c.whole("groups");
    o.bias = c.flag("bias");
    return std::make_shared<Conv2d>(o);
  }
  if (name == "ConvTranspose2d") {
    ConvTranspose2d::Options o = {.in = c.whole("in"),
                                  .out = c.whole("out"),
                                  .kernel = c.pair("kernel"),
                                  .stride = c.pair("stride"),
                                  .padding = c.pair("padding")};
    o.added = c.pair("added");
    o.dilation = c.pair("dilation");
    o.groups = c.whole("groups");
    o.bias = c.flag("bias");
    return std::make_shared<ConvTranspose2d>(o);
  }
  if (name == "BatchNorm1d" || name == "BatchNorm2d") {
    BatchNorm::Options o = {
        .features = c.whole("features"), .epsilon = c.number("epsilon"), .momentum = c.number("momentum")};
    o.weight = c.flag("weight");
    o.bias = c.flag("bias");
    o.running = c.flag("running");
    return std::make_shared<BatchNorm>(o);
  }
  if (name == "LayerNorm")
    return std::make_shared<LayerNorm>(LayerNorm::Options{.shape = Shape(std::span<const int64_t>(c.list("shape"))),
                                                          .epsilon = c.number("epsilon"),
                                                          .weight = c.flag("weight"),
                                                          .bias = c.flag("bias")});
  if (name == "LocalResponseNorm")
    return std::make_shared<LocalResponseNorm>(LocalResponseNorm::Options{
        .size = c.whole("size"), .alpha = c.number("alpha"), .beta = c.number("beta"), .k = c.number("k")});
  if (name == "MaxPool2d")
    return std::make_shared<MaxPool2d>(MaxPool2d::Options{.window = c.pair("window"),
                                                          .stride = c.pair("stride"),
                                                          .padding = c.pair("padding"),
                                                          .ceil_mode = c.flag("ceil_mode")});
  if (name == "AvgPool2d")
    return std::make_shared<AvgPool2d>(AvgPool2d::Options{.window = c.pair("window"),
                                                          .stride = c.pair("stride"),
                                                          .padding = c.pair("padding"),
                                                          .ceil_mode = c.flag("ceil_mode"),
                                                          .count_include_pad = c.flag("count_include_pad")});
  if (name == "AdaptiveAvgPool2d")
    return std::make_shared<AdaptiveAvgPool2d>(AdaptiveAvgPool2d::Options{.size = c.pair("size")});
  if (name == "ReflectionPad2d")
    return std::make_shared<ReflectionPad2d>(
        Border{.top = c.whole("top"), .bottom = c.whole("bottom"), .left = c.whole("left"), .right = c.whole("right")});
  if (name == "LSTM")
    return std::make_shared<Lstm>(Lstm::Options{.in = c.whole("in"),
                                                .hidden = c.whole("hidden"),
                                                .projection = c.whole("projection"),
                                                .layers = c.whole("layers"),
                                                .bias = c.flag("bias")});
  if (name == "MultiheadAttention")
    return std::make_shared<MultiHeadAttention>(MultiHeadAttention::Options{
        .features = c.whole("features"), .heads = c.whole("heads"), .bias = c.flag("bias")});
  if (name == "Embedding")
    return std::make_shared<Embedding>(Embedding::Options{.rows = c.whole("rows"), .features = c.whole("features")});
  if (name == "ReLU") return std::make_shared<Relu>();
  if (name == "Sigmoid") return std::make_shared<Sigmoid>();
  if (name == "Tanh") return std::make_shared<Tanh>();
  if (name == "SiLU") return std::make_shared<Silu>();
  if (name == "LeakyReLU") return std::make_shared<LeakyRelu>(LeakyRelu::Options{.slope = c.number("slope")});
  if (name == "GELU")
    return std::make_shared<Gelu>(
        Gelu::Options{.form = c.word("approximate") == "tanh" ? GeluForm::by_tanh : GeluForm::exact});
  if (name == "Flatten") return std::make_shared<Flatten>();
  throw InputError("no layer " + name);
}

/// y, and the last states of all layers: each [layers, N, width].
Variables run_lstm(Lstm& lstm, const Call& c, size_t given) {
  const bool batch_first = c.flag("batch_first");
  const Variable x = batch_first ? transpose(c.inputs[0], 0, 1) : c.inputs[0];
  std::vector<LstmState> initial;
  if (given == 3)
    for (int64_t i = 0; i < c.whole("layers"); ++i)
      initial.push_back({squeeze(slice(c.inputs[1], 0, i, i + 1), 0), squeeze(slice(c.inputs[2], 0, i, i + 1), 0)});
  const Lstm::Output output = lstm(x, {}, initial);
  Variables hidden, cell;
  for (const LstmState& state : output.last) {
    hidden.push_back(state.hidden);
    cell.push_back(state.cell);
  }
  return {batch_first ? transpose(output.y, 0, 1) : output.y, stack(hidden, 0), stack(cell, 0)};
}

/// A layer with the parameters and buffers that follow the `given` inputs.
Variables run_layer(Call& c) {
  const auto given = static_cast<size_t>(c.whole("given"));
  const auto names = c.list<std::string>("names");
  c.module = make_layer(c);
  DType dtype = DType::f32;
  StateDict state;
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& value = c.inputs[given + i].value();
    if (value.dtype() != DType::i64) dtype = value.dtype();
    state.add(names[i], value);
  }
  c.module->initialize(1, dtype);
  if (!names.empty()) c.module->load_state(state);
  c.module->set_training(c.flag("training"));
  for (const NamedParameter& named : c.module->parameters())
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == named.name) c.owned[given + i] = named.parameter;
  if (auto* lstm = dynamic_cast<Lstm*>(c.module.get())) return run_lstm(*lstm, c, given);
  if (auto* embedding = dynamic_cast<Embedding*>(c.module.get())) return {(*embedding)(c.inputs[0].value())};
  return {dynamic_cast<Layer&>(*c.module)(c.inputs[0])};
}

/// Two parameters after five steps.
Variables run_optimizer(Call& c) {
  Parameter first, second;
  first.set_value(c.inputs[0].value().clone());
  second.set_value(c.inputs[1].value().clone());
  const std::vector<NamedParameter> parameters = {{"first", &first}, {"second", c.flag("twice") ? &first : &second}};
  const auto option = [&](const char* name, double otherwise) {
    return c.attributes.contains(name) ? c.number(name) : otherwise;
  };
  std::unique_ptr<Optimizer> optimizer;
  if (c.word("optimizer") == "SGD")
    optimizer = std::make_unique<Sgd>(parameters, Sgd::Options{.lr = option("lr", 1e-3),
                                                               .momentum = option("momentum", 0),
                                                               .weight_decay = option("weight_decay", 0),
                                                               .nesterov = option("nesterov", 0) != 0});
  else
    optimizer = std::make_unique<Adam>(parameters, Adam::Options{.lr = option("lr", 1e-3),
                                                                 .beta1 = c.list<double>("betas").at(0),
                                                                 .beta2 = c.list<double>("betas").at(1),
                                                                 .epsilon = option("eps", 1e-8),
                                                                 .weight_decay = option("weight_decay", 0),
                                                                 .decoupled = c.word("optimizer") == "AdamW"});
  optimizer->set_clip_norm(c.number("clip"));
  for (size_t i = 2; i + 1 < c.inputs.size(); i += 2) {
    first.set_gradient(c.inputs[i].value());
    second.set_gradient(c.inputs[i + 1].value());
    optimizer->step();
  }
  return {Variable(first.value()), Variable(second.value())};
}

/// The learning rates of the first steps: f64 [count].
Tensor rates(const Call& c) {
  const std::string kind = c.word("kind");
  const double lr = c.number("lr"), factor = c.number("factor");
  const int64_t steps = c.whole("steps");
  Schedule schedule = constant_schedule(lr);
  if (kind == "poly") schedule = poly_schedule(lr, steps, c.number("power"));
  if (kind == "step") schedule = step_schedule(lr, c.list("at"), factor);
  if (kind == "cosine") schedule = cosine_schedule(lr, steps);
  if (kind == "warm_up") schedule = warm_up(schedule, steps);
  if (kind == "hold_first") schedule = hold_first(lr * factor, steps, schedule);
  std::vector<double> all;
  for (int64_t t = 0; t < c.whole("count"); ++t) all.push_back(schedule(t));
  return Tensor::from<double>({c.whole("count")}, all);
}

Variable normalize_batch(const Call& c) {
  const Tensor mean = c.inputs[1].defined() ? c.inputs[1].value() : Tensor();
  const Tensor variance = c.inputs[2].defined() ? c.inputs[2].value() : Tensor();
  return batch_norm(c.inputs[0], {c.inputs[3], c.inputs[4], mean, variance},
                    {.epsilon = c.number("epsilon"), .momentum = c.number("momentum")}, c.flag("training"));
}

Variable cross_entropy_of(const Call& c) {
  CrossEntropyOptions options = {.smoothing = c.number("smoothing"), .reduction = reduction(c)};
  if (c.inputs[2].defined()) options.weights = c.inputs[2].value();
  if (!c.attributes.at("ignored").is_null()) options.ignored_label = c.whole("ignored");
  return cross_entropy(c.inputs[0], c.inputs[1].value(), options);
}

Variable attention_of(const Call& c) {
  AttentionOptions options = {.causal = c.flag("causal")};
  if (!c.attributes.at("scale").is_null()) options.scale = c.number("scale");
  return attention(c.inputs[0], c.inputs[1], c.inputs[2], options);
}

Variable dropped(const Call& c) {
  const Shape& shape = c.inputs[0].shape();
  std::vector<int64_t> samples(shape.rank() == 0 ? 1 : static_cast<size_t>(shape[0]));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int64_t>(i);
  const auto rows = static_cast<int64_t>(samples.size());
  return dropout(c.inputs[0], Tensor::from<int64_t>({rows}, samples),
                 {.seed = 1, .probability = c.number("probability")});
}

Tensor argmax_of(const Call& c) {
  const Tensor& x = c.inputs[0].value();
  if (!c.attributes.at("dimension").is_null()) return argmax(x, static_cast<int>(c.whole("dimension")), c.flag("keep"));
  return argmax(x.to(MemoryFormat::row_major).reshape({x.numel()}), 0);
}

std::vector<Padding> paddings(const Call& c) {
  std::vector<Padding> all;
  for (const auto& each : c.attributes.at("padding")) all.push_back({each[0].get<int64_t>(), each[1].get<int64_t>()});
  return all;
}

/// The tensor of an input that is not differentiable; undefined for None.
Tensor plain(const Call& c, size_t input) { return c.inputs[input].defined() ? c.inputs[input].value() : Tensor(); }

std::map<std::string, Operation> make_operations() {
  std::map<std::string, Operation> all = {{"layer", run_layer}, {"optimizer", run_optimizer}};
  const auto put = [&all](const char* name, std::function<Variable(const Call&)> run) {
    all[name] = [run = std::move(run)](Call& c) { return Variables{run(c)}; };
  };
  using Unary = Variable (*)(const Variable&);
  for (const auto& [name, function] : std::initializer_list<std::pair<const char*, Unary>>{{"relu", relu},
                                                                                           {"exp", exp},
                                                                                           {"log", log},
                                                                                           {"sqrt", sqrt},
                                                                                           {"abs", abs},
                                                                                           {"sigmoid", sigmoid},
                                                                                           {"tanh", tanh},
                                                                                           {"silu", silu},
                                                                                           {"flatten", flatten}})
    put(name, [function](const Call& c) { return function(c.inputs[0]); });
  using Binary = Variable (*)(const Variable&, const Variable&);
  for (const auto& [name, function] : std::initializer_list<std::pair<const char*, Binary>>{
           {"multiply", multiply}, {"divide", divide}, {"maximum", maximum}, {"minimum", minimum}})
    put(name, [function](const Call& c) { return function(c.inputs[0], c.inputs[1]); });
  const auto scaled = [](const Call& c) {
    return c.number("alpha") == 1 ? c.inputs[1] : scale(c.inputs[1], c.number("alpha"));
  };
  put("add", [scaled](const Call& c) { return add(c.inputs[0], scaled(c)); });
  put("subtract", [scaled](const Call& c) { return subtract(c.inputs[0], scaled(c)); });
  put("number", with_number);
  put("negative", [](const Call& c) { return -c.inputs[0]; });
  put("leaky_relu", [](const Call& c) { return leaky_relu(c.inputs[0], c.number("slope")); });
  put("gelu", [](const Call& c) {
    return gelu(c.inputs[0], c.word("approximate") == "tanh" ? GeluForm::by_tanh : GeluForm::exact);
  });
  put("pow", [](const Call& c) { return pow(c.inputs[0], c.number("exponent")); });
  put("clamp", [](const Call& c) { return clamp(c.inputs[0], c.number("low"), c.number("high")); });
  put("select", [](const Call& c) { return select(c.inputs[0].value(), c.inputs[1], c.inputs[2]); });
  put("matmul", [](const Call& c) { return matmul(c.inputs[0], c.inputs[1]); });
  put("linear", [](const Call& c) { return linear(c.inputs[0], c.inputs[1], c.inputs[2]); });
  put("conv2d", [](const Call& c) { return conv2d(c.inputs[0], c.inputs[1], c.inputs[2], geometry(c)); });
  put("conv2d_same", [](const Call& c) {
    return conv2d_same(c.inputs[0], c.inputs[1], c.inputs[2], c.pair("dilation"), c.whole("groups"));
  });
  put("conv_transpose2d", [](const Call& c) {
    return conv_transpose2d(c.inputs[0], c.inputs[1], c.inputs[2], geometry(c), c.pair("added"));
  });
  put("softmax", [](const Call& c) { return along(c.inputs[0], static_cast<int>(c.whole("dimension")), softmax); });
  put("log_softmax",
      [](const Call& c) { return along(c.inputs[0], static_cast<int>(c.whole("dimension")), log_softmax); });
  put("batch_norm", normalize_batch);
  put("layer_norm", [](const Call& c) {
    return layer_norm(c.inputs[0], Shape(std::span<const int64_t>(c.list("shape"))), c.inputs[1], c.inputs[2],
                      c.number("epsilon"));
  });
  put("local_response_norm", [](const Call& c) {
    return local_response_norm(
        c.inputs[0],
        {.size = c.whole("size"), .alpha = c.number("alpha"), .beta = c.number("beta"), .k = c.number("k")});
  });
  put("max_pool2d", [](const Call& c) { return max_pool2d(c.inputs[0], window(c)); });
  put("average_pool2d", [](const Call& c) { return average_pool2d(c.inputs[0], window(c)); });
  put("adaptive_average_pool2d", [](const Call& c) { return adaptive_average_pool2d(c.inputs[0], c.pair("size")); });
  put("upsample_nearest2d", [](const Call& c) { return upsample_nearest2d(c.inputs[0], c.pair("factor")); });
  put("dropout", dropped);
  put("sum", [](const Call& c) { return sum(c.inputs[0], c.list<int>("dimensions"), c.flag("keep")); });
  put("mean", [](const Call& c) { return mean(c.inputs[0], c.list<int>("dimensions"), c.flag("keep")); });
  put("max", [](const Call& c) { return max(c.inputs[0], c.list<int>("dimensions"), c.flag("keep")); });
  put("min", [](const Call& c) { return min(c.inputs[0], c.list<int>("dimensions"), c.flag("keep")); });
  put("logsumexp", [](const Call& c) { return logsumexp(c.inputs[0], c.list<int>("dimensions"), c.flag("keep")); });
  put("variance", [](const Call& c) {
    return variance(c.inputs[0], c.list<int>("dimensions"), c.flag("keep"), static_cast<int>(c.whole("correction")));
  });
  put("add_relu", [](const Call& c) { return add_relu(c.inputs[0], c.inputs[1]); });
  put("convert",
      [](const Call& c) { return convert(c.inputs[0], c.word("dtype") == "f64" ? DType::f64 : DType::bf16); });
  put("schedule", [](const Call& c) { return Variable(rates(c)); });
  put("argmax", [](const Call& c) { return Variable(argmax_of(c)); });
  put("reshape", [](const Call& c) {
    const auto extents = c.list("extents");
    if (std::ranges::find(extents, -1) == extents.end())
      return reshape(c.inputs[0], Shape(std::span<const int64_t>(extents)));
    return reshape(
        c.inputs[0],
        Shape(c.inputs[0].value().to(MemoryFormat::row_major).reshape(std::span<const int64_t>(extents)).shape()));
  });
  put("squeeze", [](const Call& c) { return squeeze(c.inputs[0], static_cast<int>(c.whole("dimension"))); });
  put("unsqueeze", [](const Call& c) { return unsqueeze(c.inputs[0], static_cast<int>(c.whole("dimension"))); });
  put("expand", [](const Call& c) { return expand(c.inputs[0], c.list("extents")); });
  put("permute", [](const Call& c) { return permute(c.inputs[0], c.list<int>("order")); });
  put("transpose", [](const Call& c) {
    return transpose(c.inputs[0], static_cast<int>(c.whole("first")), static_cast<int>(c.whole("second")));
  });
  put("concat", [](const Call& c) { return concat(c.inputs, static_cast<int>(c.whole("dimension"))); });
  put("stack", [](const Call& c) { return stack(c.inputs, static_cast<int>(c.whole("dimension"))); });
  all["split"] = [](Call& c) { return split(c.inputs[0], c.list("extents"), static_cast<int>(c.whole("dimension"))); };
  put("slice", [](const Call& c) {
    return slice(c.inputs[0], static_cast<int>(c.whole("dimension")), c.whole("begin"), c.whole("end"));
  });
  put("pad", [](const Call& c) { return pad(c.inputs[0], paddings(c), c.number("value")); });
  put("reflection_pad2d", [](const Call& c) {
    return reflection_pad2d(
        c.inputs[0],
        {.top = c.whole("top"), .bottom = c.whole("bottom"), .left = c.whole("left"), .right = c.whole("right")});
  });
  put("embedding", [](const Call& c) { return embedding(c.inputs[0].value(), c.inputs[1]); });
  put("embedding_bag", [](const Call& c) { return embedding_bag(plain(c, 0), plain(c, 1), plain(c, 2), c.inputs[3]); });
  put("attention", attention_of);
  put("cross_entropy", cross_entropy_of);
  put("mse", [](const Call& c) { return mse(c.inputs[0], plain(c, 1), reduction(c)); });
  put("l1", [](const Call& c) { return l1(c.inputs[0], plain(c, 1), reduction(c)); });
  put("binary_cross_entropy_with_logits",
      [](const Call& c) { return binary_cross_entropy_with_logits(c.inputs[0], plain(c, 1), reduction(c)); });
  return all;
}

}  // namespace

double Call::number(const char* name) const {
  const nlohmann::json& value = attributes.at(name);
  if (!value.is_string()) return value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>();
  const std::string word = value;
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return word[0] == '-' ? -HUGE_VAL : HUGE_VAL;
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = make_operations();
  return all;
}

}  // namespace tern::torch_cases
