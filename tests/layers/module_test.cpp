#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/core/safetensors.h"
#include "tern/layers/activation.h"
#include "tern/layers/containers.h"
#include "tern/layers/conv2d.h"
#include "tern/layers/dropout.h"
#include "tern/layers/initialize.h"
#include "tern/layers/linear.h"
#include "tern/layers/normalization.h"
#include "tests/support/cuda.h"
#include "tests/support/file_bytes.h"
#include "tests/support/message_of.h"
#include "tests/support/parity.h"
#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : state) found.push_back(name);
  return found;
}

/// A small network with every kind of child.
struct Network final : Layer {
  Network() {
    blocks.append<Linear>({.in = 3, .out = 3}).append<Dropout>().append<BatchNorm1d>({.features = 3});
    residual.body.append<Linear>({.in = 3, .out = 3, .bias = false});
  }
  Variable forward(const Variable& x) override { return head(residual(blocks(x))); }

  Sequential& blocks = add<Sequential>("blocks");
  Residual& residual = add<Residual>("residual");
  Linear& head = add<Linear>("head", {.in = 3, .out = 2});
};

/// A module with two inputs, and with no options.
struct Gate final : Module {
  Variable operator()(const Variable& x, const Variable& opening) {
    return run([&] { return x * sigmoid(linear(opening)); });
  }
  Linear& linear = add<Linear>("linear", {.in = 2, .out = 2});
};

TEST(Module, MayTakeAnyInputsAndHaveNoOptions) {
  struct Model final : Module {
    Gate& gate = add<Gate>("gate");
  } model;
  const auto x = Variable(Tensor::full({1, 2}, 1));
  EXPECT_NE(message_of<Error>([&] { model.gate(x, x); }).find("gate"), std::string::npos) << "no values yet";
  model.initialize(1);
  EXPECT_EQ(names(model.state()), (std::vector<std::string>{"gate.linear.weight", "gate.linear.bias"}));
  int seen = 0;
  model.gate.on_output([&](const Variable&) { ++seen; });
  EXPECT_EQ(model.gate(x, x).shape(), (Shape{1, 2}));
  EXPECT_EQ(seen, 1);
}

TEST(Module, NamesItsStateAsPyTorchDoes) {
  Network network;
  EXPECT_EQ(network.parameter_count(), 12 + 6 + 9 + 8) << "before they have values";
  network.initialize(1);
  EXPECT_EQ(names(network.state()),
            (std::vector<std::string>{"blocks.0.weight", "blocks.0.bias", "blocks.2.weight", "blocks.2.bias",
                                      "residual.body.0.weight", "head.weight", "head.bias", "blocks.2.running_mean",
                                      "blocks.2.running_var", "blocks.2.num_batches_tracked"}));
  EXPECT_EQ(network.parameter_count(), 12 + 6 + 9 + 8);
}

TEST(Module, DrawsTheSameValuesForTheSameSeedOnly) {
  Network one, two, other;
  one.initialize(7);
  two.initialize(7);
  other.initialize(8);
  EXPECT_EQ(one.head.weight.value().to_vector<float>(), two.head.weight.value().to_vector<float>());
  EXPECT_NE(one.head.weight.value().to_vector<float>(), other.head.weight.value().to_vector<float>());
  Network wide;
  wide.initialize(7, DType::f64);
  EXPECT_EQ(wide.head.weight.value().dtype(), DType::f64);
  EXPECT_EQ(wide.blocks.state().at("2.running_var").dtype(), DType::f64);
  EXPECT_EQ(wide.head.weight.value().to_vector<float>(), one.head.weight.value().to_vector<float>());
}

TEST(Module, SaysWhichLayerHasNoValuesYet) {
  Network network;
  const Variable x = Tensor::zeros({2, 3});
  EXPECT_EQ(message_of<Error>([&] { network(x); }),
            "blocks.0: 'weight' has no value yet; call initialize(seed) on the model before its first forward");
  EXPECT_EQ(message_of<Error>([&] { network.state(); }),
            "state: 'blocks.0.weight' has no value yet; call initialize(seed) first");
}

TEST(Module, LoadsAllOrNothing) {
  Network from, to;
  from.initialize(1);
  to.initialize(2);
  to.load_state(from.state());
  EXPECT_EQ(to.head.weight.value().to_vector<float>(), from.head.weight.value().to_vector<float>());

  to.initialize(2);
  const auto before = to.blocks.state().at("0.weight").to_vector<float>();
  StateDict wrong, missing, more = from.state();
  for (const auto& [name, tensor] : from.state()) {
    wrong.add(name, name == "head.bias" ? Tensor::zeros({5}) : tensor);
    if (name != "head.bias") missing.add(name, tensor);
  }
  more.add("extra", Tensor::zeros({4}));
  EXPECT_EQ(message_of<InputError>([&] { to.load_state(wrong); }),
            "load: 'head.bias' is f32 [5], the model expects f32 [2]");
  EXPECT_EQ(message_of<InputError>([&] { to.load_state(missing); }),
            "load: no tensor named 'head.bias', the model expects one of shape [2]");
  EXPECT_EQ(message_of<InputError>([&] { to.load_state(more); }), "load: 'extra' of shape [4] is not in the model");
  EXPECT_EQ(to.blocks.state().at("0.weight").to_vector<float>(), before);
}

TEST(Module, TakesItsWidthFromItsTensors) {
  Conv2d conv({.in = 4, .out = 6, .kernel = 3, .padding = 1});
  conv.initialize(1);
  conv.weight.set_value(Tensor::full({2, 3, 3, 3}, 1));
  conv.bias->set_value(Tensor::full({2}, 1));
  EXPECT_EQ(conv(Tensor::zeros({1, 3, 5, 5})).shape(), (Shape{1, 2, 5, 5}));
  BatchNorm2d norm({.features = 6});
  norm.initialize(1);
  for (Parameter* parameter : {norm.weight, norm.bias}) parameter->set_value(Tensor::full({2}, 1));
  for (Tensor* buffer : {norm.running_mean, norm.running_var}) *buffer = Tensor::full({2}, 1);
  EXPECT_EQ(norm(Tensor::zeros({1, 2, 5, 5})).shape(), (Shape{1, 2, 5, 5}));
}

TEST(Module, ShowsItsOutputsAsTheyAreMade) {
  Network network;
  network.initialize(1);
  network.set_training(false);
  std::vector<std::string> order;
  for (const auto& [name, module] : network.modules())
    module->on_output([&order, name = name](const Variable&) { order.push_back(name); });
  network(Tensor::zeros({2, 3}));
  EXPECT_EQ(order, (std::vector<std::string>{"blocks.0", "blocks.1", "blocks.2", "blocks", "residual.body.0",
                                             "residual.body", "residual.shortcut", "residual", "head", ""}));
}

TEST(Module, RefusesANameTwice) {
  struct Twice final : Layer {
    Variable forward(const Variable& x) override { return x; }
    Relu& first = add<Relu>("relu");
    Relu& second = add<Relu>("relu");
  };
  EXPECT_EQ(message_of<Error>([] { Twice(); }), "module: 'relu' is there twice");
}

TEST(Module, ZeroesGradients) {
  Linear linear({.in = 2, .out = 1});
  linear.initialize(1);
  sum(linear(Tensor::full({1, 2}, 3))).backward();
  EXPECT_EQ(linear.weight.gradient().to_vector<float>(), (std::vector<float>{3, 3}));
  linear.zero_gradients();
  EXPECT_FALSE(linear.weight.gradient().defined());
}

TEST(CudaModule, ComputesTheSameOnceItsStepsCopyParameters) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  Sequential model;
  model.append<Conv2d>({.in = 2, .out = 3, .kernel = 3, .relu = true}).append<Linear>({.in = 4, .out = 5});
  model.initialize(1, DType::f32, device);
  const Tensor images = Tensor::full({2, 2, 6, 6}, 0.5, {.device = device, .format = MemoryFormat::channels_last});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<std::vector<double>> found;
    for (int step = 0; step < 2; ++step) {
      model.zero_gradients();
      model.begin_step({});
      const Variable y = model(images.to(dtype));
      sum(convert(y, DType::f32)).backward();
      found.push_back(y.value().to_vector<double>());
      for (const auto& [name, parameter] : model.parameters())
        found.push_back(parameter->gradient().to_vector<double>());
    }
    ASSERT_EQ(found.size(), 10u);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(found[i], found[5 + i]);
  }
}

/// Three convolutions, one of them transposed. Their filters have several channels and pixels. The input of the second
/// one has another use, too.
struct Filters final : Layer {
  Variable forward(const Variable& x) override {
    const Variable y = down(x);
    return up(same(y) + pow(y, 2));
  }
  Conv2d& down = add<Conv2d>("down", {.in = 4, .out = 6, .kernel = 3, .groups = 2});
  Conv2d& same = add<Conv2d>("same", {.in = 6, .out = 6, .kernel = 3, .padding = 1});
  ConvTranspose2d& up = add<ConvTranspose2d>("up", {.in = 6, .out = 5, .kernel = 2});
};

TEST(CudaModule, GetsGradientsInTheFormatOfItsFilters) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  Filters here, there;
  here.initialize(1);
  there.initialize(1, DType::f32, device);
  const Tensor images = Tensor::empty({2, 4, 6, 5});
  normal(1)(images, RandomStream({.seed = 2}));
  sum(pow(here(images), 2)).backward();
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      there.zero_gradients();
      const Variable y = there(images.to(format).to(dtype).to(device));
      sum(pow(convert(y, DType::f32), 2)).backward();
      const double tolerance = dtype == DType::f32 ? 1e-5 : 0.03;
      const auto parameters = there.parameters(), on_cpu = here.parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto& [name, parameter] = parameters[i];
        const Tensor &gradient = parameter->gradient(), &expected = on_cpu[i].parameter->gradient();
        EXPECT_EQ(test::difference(gradient, expected, {tolerance, tolerance}), "") << name;
        const bool filters = gradient.rank() == 4;
        EXPECT_EQ(parameter->value().format(), filters ? MemoryFormat::channels_last : MemoryFormat::row_major);
        EXPECT_EQ(gradient.format(), filters ? format : MemoryFormat::row_major) << "as cuDNN writes it";
      }
    }
}

TEST(CudaModule, WritesTheFileOfTheCpuAndReadsIt) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  Filters here, there;
  here.initialize(1);
  there.initialize(1, DType::f32, device);
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "here", here.state());
  write_safetensors(folder.path() / "there", there.state());
  EXPECT_EQ(read_file(folder.path() / "there"), read_file(folder.path() / "here"));
  Filters again_here, again_there;
  again_here.initialize(2);
  again_there.initialize(2, DType::f32, device);
  const StateDict read = read_safetensors(folder.path() / "there").tensors;
  again_here.load_state(read);
  again_there.load_state(read);
  for (const auto& [name, tensor] : here.state()) {
    EXPECT_EQ(again_here.state().at(name).to_vector<float>(), tensor.to_vector<float>()) << name;
    EXPECT_EQ(again_there.state().at(name).to_vector<float>(), tensor.to_vector<float>()) << name;
  }
}

TEST(BatchNorm, CountsTrainingBatchesAndEvaluatesWithRunningStatistics) {
  BatchNorm1d norm({.features = 1, .momentum = 0.5});
  norm.initialize(1);
  const Tensor x = Tensor::from<float>({2, 1}, std::vector<float>{1, 3});
  norm(x);
  EXPECT_EQ(norm.num_batches_tracked->item(), 1);
  EXPECT_FLOAT_EQ(norm.running_mean->item(), 1);
  EXPECT_FLOAT_EQ(norm.running_var->item(), 1.5);
  norm.set_training(false);
  const float y = norm(x).value().to_vector<float>()[1];
  EXPECT_FLOAT_EQ(y, 2 / std::sqrt(1.5f + 1e-5f));
  EXPECT_EQ(norm.num_batches_tracked->item(), 1);
}

TEST(BatchNorm, CountsBatchesThatDoNotChangeItsStatistics) {
  BatchNorm1d norm({.features = 1, .momentum = 0});
  norm.initialize(1);
  norm(Tensor::from<float>({2, 1}, {1, 3}));
  EXPECT_EQ(norm.num_batches_tracked->item(), 1);
  EXPECT_EQ(norm.running_mean->item(), 0);
  EXPECT_EQ(message_of<Error>([] { BatchNorm1d({.features = 1, .momentum = 2}); }),
            "BatchNorm: momentum 2, expected [0, 1]");
}

TEST(Residual, TakesEqualShapesOnly) {
  for (const bool relu : {false, true}) {
    Residual residual({.relu = relu});
    residual.body.append<Linear>({.in = 4, .out = 1});
    residual.initialize(1);
    EXPECT_EQ(message_of<Error>([&] {
                residual(Tensor::zeros({2, 4}));
              }),
              "Residual: the body gives [2, 1] and the shortcut [2, 4], expected equal shapes");
  }
}

struct Named final : Module {
  using Module::add;
  using Module::add_buffer;
  using Module::add_counter;
  using Module::add_parameter;
};

TEST(Module, TakesEachNameOnceAndWithoutDots) {
  Named module;
  module.add_parameter("weight", {1}, constant(1));
  module.add_buffer("mean", {1}, 0);
  module.add<Relu>("relu");
  for (const char* taken : {"weight", "mean", "relu"}) {
    const std::string sentence = join({"module: '", taken, "' is there twice"});
    EXPECT_EQ(message_of<Error>([&] { module.add_parameter(taken, {1}, constant(1)); }), sentence);
    EXPECT_EQ(message_of<Error>([&] { module.add_buffer(taken, {1}, 0); }), sentence);
    EXPECT_EQ(message_of<Error>([&] { module.add_counter(taken); }), sentence);
    EXPECT_EQ(message_of<Error>([&] { module.add<Relu>(taken); }), sentence);
  }
  for (const char* wrong : {"", "a.b"})
    EXPECT_EQ(message_of<Error>([&] { module.add_buffer(wrong, {1}, 0); }),
              join({"module: name '", wrong, "', expected one without dots"}));
  EXPECT_EQ(message_of<Error>([] { Linear({.weight_initializer = {}}); }),
            "module: parameter 'weight' has no initializer");
}

/// Adds two dropouts with a ReLU between them.
Sequential& fill(Sequential& layers) {
  return layers.append<Dropout>({.probability = 0.25}).append<Relu>().append<Dropout>({.probability = 0.25});
}

TEST(Dropout, DrawsBySeedStepLayerAndSampleAlone) {
  Sequential layers;
  fill(layers);
  const Tensor ones = Tensor::full({3, 1000}, 1);
  const auto samples = [](std::vector<int64_t> indices) { return Tensor::from<int64_t>({3}, indices); };
  EXPECT_EQ(message_of<Error>([&] { layers(ones); }),
            "Dropout: call begin_step on the model before a forward in training");

  layers.begin_step({.seed = 1, .step = 4, .samples = samples({5, 6, 7})});
  const auto first = layers(ones).value().to_vector<float>();
  layers.begin_step({.seed = 1, .step = 4, .samples = samples({5, 6, 7})});
  EXPECT_EQ(layers(ones).value().to_vector<float>(), first);
  layers.begin_step({.seed = 1, .step = 4, .samples = samples({7, 5, 6})});
  const auto moved = layers(ones).value().to_vector<float>();
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 2000, moved.begin() + 1000)) << "rows follow their samples";
  layers.begin_step({.seed = 1, .step = 5, .samples = samples({5, 6, 7})});
  EXPECT_NE(layers(ones).value().to_vector<float>(), first);

  // The two dropouts draw independently: 9/16 of the elements pass both, not 3/4.
  const auto kept = std::ranges::count_if(first, [](float value) { return value > 0; });
  EXPECT_NEAR(static_cast<double>(kept) / 3000, 9.0 / 16, 0.04);
  layers.set_training(false);
  EXPECT_EQ(layers(ones).value().to_vector<float>(), ones.to_vector<float>());
}

// A model runs twice in a step in SimCSE and R-Drop, and many models share one dropout.
TEST(Dropout, DrawsAnewForEachCallInAStep) {
  Dropout layer({.probability = 0.25});
  const Tensor ones = Tensor::full({2, 1000}, 1), samples = Tensor::from<int64_t>({2}, {5, 6});
  const StepContext context = {.seed = 1, .step = 4, .samples = samples};
  const auto drawn = [&] { return layer(ones).value().to_vector<float>(); };
  layer.begin_step(context);
  const auto first = drawn();
  {
    const EvaluationMode mode(layer);
    EXPECT_EQ(drawn(), ones.to_vector<float>());
  }
  const auto second = drawn();
  EXPECT_EQ(first,
            dropout(ones, samples, {.seed = 1, .step = 4, .layer = 0, .probability = 0.25}).value().to_vector<float>());
  int both = 0;
  for (size_t i = 0; i < first.size(); ++i) both += first[i] > 0 && second[i] > 0;
  EXPECT_NEAR(both / 2000.0, 9.0 / 16, 0.04) << "the calls draw independently";
  layer.begin_step(context);
  EXPECT_EQ(drawn(), first);
  EXPECT_EQ(drawn(), second) << "the call in evaluation does not count";
}

TEST(EvaluationMode, GivesEachModuleItsOwnModeBack) {
  Network net;
  net.blocks.set_training(false);
  net.blocks.modules().back().module->set_training(true);
  const auto modes = [&] {
    std::vector<bool> found;
    for (const auto& [name, module] : net.modules()) found.push_back(module->training());
    return found;
  };
  const auto before = modes();
  EXPECT_EQ(std::ranges::count(before, false), 3) << "blocks and its first two layers";
  {
    const EvaluationMode mode(net);
    EXPECT_EQ(std::ranges::count(modes(), true), 0);
  }
  EXPECT_EQ(modes(), before);
}

}  // namespace
}  // namespace tern
