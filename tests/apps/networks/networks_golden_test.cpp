#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/safetensors.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/googlenet.h"
#include "tern/networks/resnet.h"
#include "tern/networks/vgg.h"

// The weights, the batch and the expected values come from make_models.py.

namespace tern {
namespace {

constexpr int64_t kBatch = 3;
constexpr int64_t kPeriod = 65521;

/// Values in [-1, 1): the first kPeriod numbers of stream `number`, repeated.
Tensor uniform_values(const Shape& shape, uint32_t number) {
  Tensor values = Tensor::empty(shape);
  const RandomStream random({.seed = 1, .purpose = Purpose::test, .tensor = number});
  float* value = values.data<float>();
  for (int64_t i = 0; i < values.numel(); ++i)
    value[i] = i < kPeriod ? random.uniform(static_cast<uint64_t>(i)) * 2 - 1 : value[i - kPeriod];
  return values;
}

/// Draws the parameters from streams 1, 2, ... in the order of the parameters.
void set_parameters(Module& model) {
  uint32_t number = 0;
  for (const auto& [name, parameter] : model.parameters()) {
    const Shape shape = parameter->value().shape();
    const Tensor values = uniform_values(shape, ++number);
    const auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(shape.numel_from(1))));
    for (float& value : values.span<float>())
      value = shape.rank() > 1 ? value * bound : name.ends_with("weight") ? 1 + value * 0.25f : value * 0.125f;
    parameter->set_value(values.to(parameter->value().dtype()));
  }
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// A gradient's norm, and its products with three vectors of numbers in [-1, 1).
std::array<double, 4> digest(const Tensor& gradient) {
  const auto values = gradient.to_vector<double>();
  std::array<double, 4> found = {norm(values)};
  for (uint32_t k = 0; k < 3; ++k) {
    const Tensor factors = uniform_values({gradient.numel()}, 1000 + k);
    for (size_t i = 0; i < values.size(); ++i) found[k + 1] += values[i] * factors.data<float>()[i];
  }
  return found;
}

/// Compares outputs, loss and every parameter's gradient with PyTorch's f64 values. In f32 they agree within 1e-4 of
/// their norms, in f64 within 1e-6. Deep networks are compared in f64: near the kink of a ReLU, rounding decides which
/// units are active, and this changes digits of their gradients. `batch` is the stream of the images.
void expect_pytorch(Layer& model, const std::string& name, int64_t side, DType dtype, uint32_t batch = 0) {
  static const StateDict golden = read_safetensors(TERN_GOLDEN_DIR "/models.safetensors").tensors;
  const auto expected = [&](const char* what) { return golden.at(name + "/" + what).to_vector<double>(); };
  const double tolerance = dtype == DType::f32 ? 1e-4 : 1e-6;
  model.initialize(1, dtype);
  set_parameters(model);
  const Tensor x = uniform_values({kBatch, 3, side, side}, batch).to(MemoryFormat::channels_last).to(dtype);
  const Variable logits = model(x);
  const Variable loss = cross_entropy(logits, Tensor::from({kBatch}, std::vector<int64_t>{1, 4, 7}));
  loss.backward();

  const auto outputs = expected("logits"), found = logits.value().to_vector<double>();
  ASSERT_EQ(found.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_NEAR(found[i], outputs[i], tolerance * norm(outputs)) << "output " << i;
  EXPECT_NEAR(loss.value().item(), expected("loss")[0], tolerance * expected("loss")[0]);

  const auto gradients = expected("gradients");
  ASSERT_EQ(gradients.size(), 4 * model.parameters().size());
  auto row = gradients.begin();
  for (const auto& [parameter_name, parameter] : model.parameters()) {
    const auto own = digest(parameter->gradient());
    for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(own[k], row[k], tolerance * row[0]) << parameter_name << ", " << k;
    row += 4;
  }
}

TEST(ModelsGolden, CifarNet) {
  networks::CifarNet model({});
  expect_pytorch(model, "cifarnet", 24, DType::f32);
}
TEST(ModelsGolden, ResNet20) {
  networks::ResNet model({.depth = 20});
  expect_pytorch(model, "resnet20", 32, DType::f32);
}
TEST(ModelsGoldenSlow, ResNet20WithProjections) {
  networks::ResNet model({.depth = 20, .shortcut = networks::Shortcut::projection});
  expect_pytorch(model, "resnet20_projected", 32, DType::f64);
}
TEST(ModelsGoldenSlow, ResNet18) {
  networks::ResNet model({.depth = 18});
  expect_pytorch(model, "resnet18", 16, DType::f64);
}
TEST(ModelsGoldenSlow, ResNet50OfImageNet) {
  networks::ResNet model({.depth = 50, .stem = networks::Stem::imagenet});
  expect_pytorch(model, "resnet50_imagenet", 32, DType::f64);
}
TEST(ModelsGoldenSlow, AlexNet) {
  networks::AlexNet model({.classes = 10, .dropout = 0});
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "alexnet", 224, DType::f32, 2003);
}
TEST(ModelsGoldenSlow, AlexNetOfOneTower) {
  networks::OneTowerAlexNet model({.classes = 10, .dropout = 0});
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "alexnet_one_tower", 224, DType::f32, 2000);
}

/// A VGG of a quarter of the filters. Its last pooling leaves one pixel of an image of 32×32, and four of 64×64.
networks::VggOptions narrow_vgg(networks::VggDepth depth, networks::VggNorm norm, int64_t side = 32) {
  return {.depth = depth,
          .norm = norm,
          .height = side,
          .width = side,
          .classes = 10,
          .filters = 16,
          .hidden = 96,
          .dropout = 0};
}

TEST(ModelsGoldenSlow, VggAWithNormalisedConvolutions) {
  networks::Vgg model(narrow_vgg(networks::VggDepth::a, networks::VggNorm::convolutions, 64));
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "vgg_a", 64, DType::f64);
}
TEST(ModelsGoldenSlow, Vgg12WithNormalisedHiddenLayers) {
  networks::Vgg model(narrow_vgg(networks::VggDepth::twelve, networks::VggNorm::all));
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "vgg12", 32, DType::f64);
}
TEST(ModelsGoldenSlow, Vgg16WithNormalisedConvolutions) {
  networks::Vgg model(narrow_vgg(networks::VggDepth::sixteen, networks::VggNorm::convolutions));
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "vgg16", 32, DType::f64);
}
TEST(ModelsGoldenSlow, PlainVgg19) {
  networks::Vgg model(narrow_vgg(networks::VggDepth::nineteen, networks::VggNorm::none));
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "vgg19", 32, DType::f32);
}

// The last pooling averages four pixels.
TEST(ModelsGoldenSlow, GoogLeNet) {
  networks::GoogLeNet model({.classes = 10, .dropout = 0});
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "googlenet", 65, DType::f64);
}
TEST(ModelsGoldenSlow, BnInception) {
  networks::GoogLeNet model({.variant = networks::InceptionVariant::bn_inception, .classes = 10, .dropout = 0});
  model.begin_step({.samples = Tensor::zeros({kBatch}, {DType::i64})});
  expect_pytorch(model, "bn_inception", 65, DType::f64);
}

}  // namespace
}  // namespace tern
