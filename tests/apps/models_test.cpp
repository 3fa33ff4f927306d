#include <gtest/gtest.h>

#include "tern/apps/models/lenet.h"
#include "tern/apps/models/mlp.h"
#include "tern/apps/models/resnet.h"
#include "tern/autograd/loss.h"

namespace tern {
namespace {

TEST(LeNet, HasTheParametersOfItsTwoSources) {
  models::LeNet lenet;
  lenet.initialize(1);
  EXPECT_EQ(lenet.parameter_count(), 1'256'080);
  models::CaffeLeNet caffe;
  caffe.initialize(1);
  EXPECT_EQ(caffe.parameter_count(), 431'080);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : lenet.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                             "fc1.bias", "fc2.weight", "fc2.bias"}));
}

TEST(LeNet, GivesTheSameLogitsInBothFormats) {
  models::LeNet lenet;
  lenet.initialize(1, DType::f64);
  const Tensor x = Tensor::empty({2, 1, 28, 28}, {DType::f64});
  normal(1)(x, RandomStream({.seed = 3}));
  const auto plain = lenet(x).value().to_vector<double>();
  const auto other = lenet(x.to(MemoryFormat::channels_last)).value().to_vector<double>();
  ASSERT_EQ(plain.size(), 20u);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], other[i], 1e-12);
}

TEST(LeNet, TrainsOnBfloat16ActivationsBesideF32Parameters) {
  models::LeNet lenet;
  lenet.initialize(1);
  const Tensor x = Tensor::empty({4, 1, 28, 28}), labels = Tensor::zeros({4}, {DType::i64});
  normal(1)(x, RandomStream({.seed = 3}));
  const auto loss_on = [&](const Tensor& input) {
    lenet.zero_gradients();
    const Variable logits = lenet(input), loss = cross_entropy(logits, labels);
    EXPECT_EQ(logits.value().dtype(), input.dtype());
    EXPECT_EQ(loss.value().dtype(), DType::f32);
    loss.backward();
    for (const auto& [name, parameter] : lenet.parameters())
      EXPECT_EQ(parameter->gradient().dtype(), DType::f32) << name;
    return loss.value().item();
  };
  const double exact = loss_on(x);
  const auto gradient = lenet.fc2.bias->gradient().to_vector<float>();
  EXPECT_NEAR(loss_on(x.to(DType::bf16)), exact, 0.02 * exact);
  const auto rounded = lenet.fc2.bias->gradient().to_vector<float>();
  for (size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(rounded[i], gradient[i], 0.02) << "element " << i;
}

TEST(Mlp, HasALayerBetweenEveryTwoWidths) {
  models::Mlp mlp({.widths = {6, 5, 4}});
  mlp.initialize(1);
  EXPECT_EQ(mlp.parameter_count(), 6 * 5 + 5 + 5 * 4 + 4);
  EXPECT_EQ(mlp(Tensor::zeros({2, 1, 2, 3})).shape(), (Shape{2, 4}));
}

TEST(Mlp, NormalisesBeforeEachReluWhereAsked) {
  models::Mlp mlp({.widths = {6, 5, 4}, .norm = true});
  mlp.initialize(1);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : mlp.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.1.weight", "layers.1.bias", "layers.2.weight",
                                             "layers.2.bias"}));
  const Tensor x = Tensor::empty({8, 1, 2, 3});
  normal(100)(x, RandomStream({.seed = 3}));
  std::vector<float> hidden;
  mlp.layers.modules()[2].module->on_output([&](const Variable& y) { hidden = y.value().to_vector<float>(); });
  mlp(x);
  for (const float value : hidden) EXPECT_TRUE(value >= 0 && value < 3) << value;
}

TEST(ResNet18, HasTorchvisionsNamesAndSizes) {
  models::ResNet18 resnet({.classes = 10});
  resnet.initialize(1);
  EXPECT_EQ(resnet.parameter_count(), 11'173'962);
  const StateDict state = resnet.state();
  EXPECT_EQ(state.size(), 122u);
  EXPECT_EQ(state.at("layer2.0.downsample.0.weight").shape(), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(state.at("layer4.1.bn2.num_batches_tracked").dtype(), DType::i64);
  EXPECT_EQ(state.find("layer1.0.downsample.0.weight"), nullptr);
}

}  // namespace
}  // namespace tern
